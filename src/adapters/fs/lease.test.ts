import { leaseConformance } from '../../testing/conformance/lease.ts'
import { folderLease } from '../../testing/folder-lease.ts'
import { watchFolder } from './folder-watch.ts'

leaseConformance('a lease in a folder', folderLease(watchFolder))
