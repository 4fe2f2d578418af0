# The deployment refuses a consumer. The next plan does without it, and growth waits for a while.
settings creation_backoff_ms=5000
a controller starts with epoch 1
  > save
  > list deployments
  = Synchronize
deployed:
  > list deployments
deployed:
  first_start: nothing is deployed: this is a first start
  = Sentinel
speeds orders-0=40 orders-1=40 orders-2=40
  partition_appeared: 3 partitions appeared
tick +500
  > pack orders-0=40 orders-1=40 orders-2=40 given Assignment()
  = Reassign
packed 1: orders-0 orders-1; 2: orders-2
  plan_made: plan 2 (unread_partition): nobody reads orders-0, orders-1, orders-2; 3 partitions on 2 consumers, 0 moves of 0 bytes/s, 3 starts, 2 consumers to come
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
  plan_done: plan 2 is done after 0 ms
  > save
  = Sentinel
3000 ms pass
speeds orders-0=40 orders-1=80 orders-2=80
tick +500
  > pack orders-0=40 orders-1=80 orders-2=80 given Assignment(1: [orders-0 orders-1], 2: [orders-2])
  = Reassign
packed 1: orders-0; 2: orders-2; 3: orders-1
  plan_made: plan 3 (over_capacity): more is written than consumers 1 carry; 3 partitions on 3 consumers, 1 moves of 80 bytes/s, 0 starts, 1 consumers to come
  consumer_created: consumer 3 is created
  > save
  > create consumer 3
  = Group Management
consumer 3 is befallen: Unschedulable: 0/3 nodes are available
  consumer_incident: consumer 3: Unschedulable: 0/3 nodes are available
consumer 3 cannot be created: no quota
  creation_failed: consumer 3: no quota
  plan_overtaken: plan 3 is overtaken: a consumer that the plan counted on is lost
  > save
  > delete consumer 3
  > pack orders-0=40 orders-1=80 orders-2=80 given Assignment(1: [orders-0], 2: [orders-2])
  = Reassign
packed 1: orders-0 orders-1; 2: orders-2
  plan_made: plan 4 (consumer_lost): a consumer that the plan counted on is lost; 3 partitions on 2 consumers, 0 moves of 0 bytes/s, 0 starts, 0 consumers to come
  plan_done: plan 4 is done after 0 ms
  > save
  = Sentinel
