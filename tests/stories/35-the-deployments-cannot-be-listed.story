# The back-end is away while a controller starts. It lists again every two seconds, says so once, and
# goes on when the list comes.
a controller starts with epoch 1
  > save
  > list deployments
  = Synchronize
the deployments cannot be listed: the API server is away
  listing_failed: the deployments cannot be listed: the API server is away; they are listed again every 2 s
tick +1000
tick +999
tick +1
  > list deployments
the deployments cannot be listed: the API server is away
tick +2000
  > list deployments
deployed: 1
  > query 1
consumer 1 answers nothing
  > list deployments
deployed: 1
  synchronised: 1 consumer answered, 0 partitions owned
  = Sentinel
# Later, the list that follows a report of an unknown consumer fails. Its next reports do not hurry
# the list.
speeds orders-0=40
  partition_appeared: 1 partition appeared
consumer 7 reports
  > list deployments
the deployments cannot be listed: no such right
  listing_failed: the deployments cannot be listed: no such right; they are listed again every 2 s
consumer 7 reports
tick +1000
  > pack orders-0=40 given Assignment(1: [])
  = Reassign
consumer 7 reports
tick +1000
  > list deployments
deployed: 1 7
  consumer_adopted: consumer 7 is deployed and was unknown
  > save
# A list that was asked for before the failure comes after it: the wait is over.
consumer 8 reports
  > list deployments
consumer 8 reports
  > list deployments
the deployments cannot be listed: no such right
  listing_failed: the deployments cannot be listed: no such right; they are listed again every 2 s
deployed: 1 7 8
  consumer_adopted: consumer 8 is deployed and was unknown
  > save
tick +2000
