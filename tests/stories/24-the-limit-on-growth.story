# A sudden load needs many consumers: they are created as fast as the limit allows, and no faster.
settings creations_per_window_max=2 creation_window_ms=10000
a controller starts with epoch 1
  > save
  > list deployments
  = Synchronize
deployed:
  > list deployments
deployed:
  first_start: nothing is deployed: this is a first start
  = Sentinel
speeds a-0=90 b-0=90 c-0=90 d-0=90
  partition_appeared: 4 partitions appeared
tick +500
  > pack a-0=90 b-0=90 c-0=90 d-0=90 given Assignment()
  = Reassign
packed 1: a-0; 2: b-0; 3: c-0; 4: d-0
  plan_made: plan 2 (unread_partition): nobody reads a-0, b-0, c-0, d-0; 4 partitions on 4 consumers, 0 moves of 0 bytes/s, 4 starts, 4 consumers to come
  consumer_created: consumer 1 is created
  consumer_created: consumer 2 is created
  > save
  > create consumer 1
  > create consumer 2
  = Group Management
consumer 1 reports
  > save
  > start at 1: a-0@1.1 (plan 2)
tick +9000
  consumer_fenced: consumer 1 was not heard of for 8000 ms: it is fenced, 1 partitions it had are free
  plan_overtaken: plan 2 is overtaken: a consumer that the plan counted on is lost
  > save
  > delete consumer 1
  > pack a-0=90 b-0=90 c-0=90 d-0=90 given Assignment(2: [b-0], 3: [c-0], 4: [d-0])
  = Reassign
tick +1100
  consumer_created: consumer 3 is created
  consumer_created: consumer 4 is created
  > save
  > create consumer 3
  > create consumer 4
