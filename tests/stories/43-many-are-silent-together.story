# Three of four consumers fall silent together: what they share is at fault. They are held, then given
# up one at a time, and the hold ends when they are few again.
settings give_up_period=10s
a controller starts with epoch 1
  > save
  > list deployments
  = Synchronize
deployed:
  > list deployments
deployed:
  first_start: no consumer is deployed yet
  = Sentinel
speeds orders-0=80 orders-1=80 orders-2=80 orders-3=80
  partition_appeared: 4 partitions appeared
tick +500
  > pack orders-0=80 orders-1=80 orders-2=80 orders-3=80 given Assignment()
  = Reassign
packed 1: orders-0; 2: orders-1; 3: orders-2; 4: orders-3
  plan_made: plan 2 (unread_partition): no consumer reads orders-0, orders-1, orders-2, orders-3; 4 partitions on 4 consumers, 0 moves of 0 B/s, 4 starts, 4 to create, 0 to empty
  consumer_created: consumer 1 is created
  consumer_created: consumer 2 is created
  consumer_created: consumer 3 is created
  consumer_created: consumer 4 is created
  > save
  > create consumer 1
  > create consumer 2
  > create consumer 3
  > create consumer 4
  = Group Management
consumer 1 reports
  > save
  > start at 1: orders-0@1.1 (plan 2)
consumer 2 reports
  > save
  > start at 2: orders-1@1.2 (plan 2)
consumer 3 reports
  > save
  > start at 3: orders-2@1.3 (plan 2)
consumer 4 reports
  > save
  > start at 4: orders-3@1.4 (plan 2)
consumer 1 started orders-0@1.1
consumer 2 started orders-1@1.2
consumer 3 started orders-2@1.3
consumer 4 started orders-3@1.4
  plan_done: plan 2 is done after 0 s
  > save
  = Sentinel
the controller hears itself for 5000 ms
consumer 1 reports orders-0@1.1
the controller hears itself for 3000 ms
  held_by_silence: 3 of 4 consumers are silent or late together (2, 3, 4): what they share is at fault, and they are waited for
consumer 1 reports orders-0@1.1
the controller hears itself for 5000 ms
consumer 1 reports orders-0@1.1
the controller hears itself for 5000 ms
  consumer_fenced: consumer 2 sent no message for 8 s while the controller could read: fenced, 1 partition to start elsewhere
  > save
  > delete consumer 2
consumer 1 reports orders-0@1.1
consumer 3 reports orders-2@1.3
consumer 4 reports orders-3@1.4
the controller hears itself for 1000 ms
  > pack orders-0=80 orders-1=80 orders-2=80 orders-3=80 given Assignment(1: [orders-0], 3: [orders-2], 4: [orders-3])
  = Reassign
