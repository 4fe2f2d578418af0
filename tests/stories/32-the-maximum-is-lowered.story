# The group shrinks to a lowered maximum by a plan; the request is done when it has.
a controller starts with epoch 1
  > save
  > list deployments
  = Synchronize
deployed:
  > list deployments
deployed:
  first_start: no consumer is deployed yet
  = Sentinel
speeds a-0=90 b-0=90 c-0=90
  partition_appeared: 3 partitions appeared
tick +500
  > pack a-0=90 b-0=90 c-0=90 given Assignment()
  = Reassign
packed 1: a-0; 2: b-0; 3: c-0
  plan_made: plan 2 (unread_partition): no consumer reads a-0, b-0, c-0; 3 partitions on 3 consumers, 0 moves of 0 B/s, 3 starts, 3 to create, 0 to empty
  consumer_created: consumer 1 is created
  consumer_created: consumer 2 is created
  consumer_created: consumer 3 is created
  > save
  > create consumer 1
  > create consumer 2
  > create consumer 3
  = Group Management
consumer 1 reports
  > save
  > start at 1: a-0@1.1 (plan 2)
consumer 2 reports
  > save
  > start at 2: b-0@1.2 (plan 2)
consumer 3 reports
  > save
  > start at 3: c-0@1.3 (plan 2)
consumer 1 started a-0@1.1
consumer 2 started b-0@1.2
consumer 3 started c-0@1.3
  plan_done: plan 2 is done after 0 s
  > save
  = Sentinel
3000 ms pass
request m1: settings consumers_max=2
  request_answered: request m1: accepted, 3 consumers now, the maximum is 2
  > save
  > answer m1: accepted
speeds a-0=90 b-0=90 c-0=90
tick +500
  > pack a-0=90 b-0=90 c-0=90 given Assignment(1: [a-0], 2: [b-0], 3: [c-0])
  = Reassign
# The plan empties the third consumer, and it is removed.
packed 1: a-0 c-0; 2: b-0
  plan_made: plan 3 (over_maximum): 3 consumers have partitions, the maximum is 2; 3 partitions on 2 consumers, 1 move of 90 B/s, 0 starts, 0 to create, 1 to empty
  > save
  > stop at 3: c-0@1.3 (plan 3)
  = Group Management
consumer 3 stopped c-0@1.3
  > save
  > start at 1: c-0@1.4 (plan 3)
consumer 1 started c-0@1.4
  plan_done: plan 3 is done after 0 s
  consumer_removed: consumer 3 is removed: it has no partitions, and there are enough spares
  > save
  > delete consumer 3
  = Sentinel
tick +500
  request_answered: request m1: done, the group has 2 consumers
  > save
  > answer m1: done
consumer 3 is deleted
# Over capacity, but nothing better is possible: it is not tried again at once.
3000 ms pass
consumer 1 reports a-0@1.1 c-0@1.4
consumer 2 reports b-0@1.2
speeds a-0=90 b-0=90 c-0=90
tick +500
  > pack a-0=90 b-0=90 c-0=90 given Assignment(1: [a-0 c-0], 2: [b-0])
  = Reassign
packed 1: a-0 c-0; 2: b-0
  nothing_to_gain: consumer 1 is over capacity: 180 of 100 B/s, but no better assignment was found
  = Sentinel
tick +500
# A minimum above what is there is done when the consumers are up.
request m2: settings consumers_max=3 consumers_min=3
  request_answered: request m2: accepted, 2 consumers up, the minimum is 3
  > save
  > answer m2: accepted
tick +500
  > pack a-0=90 b-0=90 c-0=90 given Assignment(1: [a-0 c-0], 2: [b-0])
  = Reassign
consumer 3 starts again
consumer 3 reports
  > list deployments
tick +500
