# A restarted controller keeps to a pause, obeys no request twice, and goes on with its roll-out.
a controller starts with epoch 1
  > save
  > list deployments
  = Synchronize
deployed:
  > list deployments
deployed:
  first_start: no consumer is deployed yet
  = Sentinel
speeds orders-0=40 orders-1=40 orders-2=40
  partition_appeared: 3 partitions appeared
tick +500
  > pack orders-0=40 orders-1=40 orders-2=40 given Assignment()
  = Reassign
packed 1: orders-0 orders-1; 2: orders-2
  plan_made: plan 2 (unread_partition): no consumer reads orders-0, orders-1, orders-2; 3 partitions on 2 consumers, 0 moves of 0 B/s, 3 starts, 2 to create, 0 to empty
  consumer_created: consumer 1 is created
  consumer_created: consumer 2 is created
  > save
  > create consumer 1
  > create consumer 2
  = Group Management
consumer 1 reports
  > save
  > start at 1: orders-0@1.1 orders-1@1.2 (plan 2)
consumer 2 reports
  > save
  > start at 2: orders-2@1.3 (plan 2)
consumer 1 started orders-0@1.1 orders-1@1.2
consumer 2 started orders-2@1.3
  plan_done: plan 2 is done after 0 s
  > save
  = Sentinel
request u1: update
  request_answered: request u1: accepted, version 1 is tried first, then one by one
  > save
  > try the deployment of version 1
  > answer u1: accepted
the new deployment works
  > deploy version 1 from now on
  > save
tick +500
  consumer_created: consumer 3 is created
  > save
  > create consumer 3 version 1
consumer 3 reports
  > save
request p1: pause direction=up reason=sale
  request_answered: request p1: done, paused: up; sale
  > save
  > answer p1: done
a controller starts with epoch 2 with its state file
  > save
  > list deployments
  = Synchronize
deployed: 1 2 3/1
  > query 1
  > query 2
  > query 3
request u1: update
request p1: pause direction=up reason=sale
consumer 1 answers orders-0@1.1 orders-1@1.2
consumer 2 answers orders-2@1.3
consumer 3 answers nothing
  > list deployments
deployed: 1 2 3/1
  synchronised: 3 consumers answered, 3 partitions owned
  = Sentinel
speeds orders-0=90 orders-1=90 orders-2=40
  partition_appeared: 3 partitions appeared
tick +500
  plan_made: plan 4 (roll_out): consumer 1 is replaced by one of version 1; 3 partitions on 2 consumers, 2 moves of 180 B/s, 0 starts, 0 to create, 1 to empty
  > save
  > stop at 1: orders-0@1.1 orders-1@1.2 (plan 4)
  = Group Management
