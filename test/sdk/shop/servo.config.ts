import { cloudTasks, defineConfig, gcs, inProcess, local, postgres, s3 } from 'servo-flow'

const serviceUrl = 'https://servo-abc.run.app'

export default defineConfig({
  project: 'shop',
  dirs: ['./assets'], // every exported definition is picked up
  environments: {
    dev: { storage: local('.servo'), queue: inProcess({ concurrency: 8 }) },
    prod: { storage: s3('s3://shop-servo'), queue: postgres(process.env.DATABASE_URL!) },
    cloud: {
      storage: gcs('gs://shop-servo'),
      queue: cloudTasks({ project: 'shop', location: 'europe-west1', queue: 'servo', serviceUrl }),
    },
  },
  pools: { warehouse: 4, 'shop-api': 2 }, // named concurrency limits
  alerts: [{ on: ['run.failed', 'asset.stale', 'check.failed'], to: 'slack://#data-alerts' }],
})
