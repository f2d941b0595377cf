import { leaseConformance } from '../../testing/conformance/lease.ts'
import { folderLease } from '../../testing/folder-lease.ts'

leaseConformance(
  'a lease in a folder that cannot be watched',
  folderLease(() => undefined),
)
