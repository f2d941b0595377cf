/** The public API for tests of assets: `servo-flow/test`. */
export {
  type CheckOutcome,
  type KeysBySet,
  type Materialized,
  materialize,
} from './sdk/attempt/materialize.ts'
export type { MaterializeOptions } from './sdk/attempt/materialize-options.ts'
