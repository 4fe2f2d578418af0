# A higher capacity takes effect at the next tick; an invalid change is refused.
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
request s1: settings capacity_bytes_per_s=200 consumers_max=5
  request_answered: request s1: done, changed: packing.capacity 200B/s, controller.consumers_max 5
  > save
  > answer s1: done
request s2: settings consumers_min=9
  request_answered: request s2: refused, controller: consumers_min 9 is above consumers_max 5
  > save
  > answer s2: refused
request s3: settings algorithm=nosuch
  request_answered: request s3: refused, packing.algorithm: no packing algorithm 'nosuch'; there are CHAIN, NF, NFD, FF, FFD, WF, WFD, BF, BFD, MWF, MWFP, MBF, MBFP
  > save
  > answer s3: refused
request s4: settings algorithm_knob=7
  request_answered: request s4: refused, packing.knob: Input should be less than or equal to 1
  > save
  > answer s4: refused
request s5: settings algorithm=chain algorithm_knob=0.3
  request_answered: request s5: done, changed: packing.algorithm CHAIN, packing.knob 0.3
  > save
  > answer s5: done
request s6: settings
  request_answered: request s6: done, nothing to change
  > save
  > answer s6: done
request s7: dance
  request_answered: request s7: refused, no such request
  > save
  > answer s7: refused
a controller starts with epoch 2 with its state file
  > save
  > list deployments
  = Synchronize
