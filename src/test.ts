/** What tests of assets import, as `servo-flow/test`. */
export {
  type CheckOutcome,
  type KeysBySet,
  type Materialized,
  type MaterializeOptions,
  materialize,
} from './sdk/attempt/materialize.ts'
