import { describe, expect, test } from 'vitest'
import { assetDefinition } from '../../../contract/project-manifest.ts'
import { AssetGraph } from '../../assets/graph.ts'
import { SensorDefined } from '../sensor-defined.event.ts'
import { watchedKeys } from './watched-keys.ts'

const asset = (asset_key: string, more: object = {}) => assetDefinition.parse({ asset_key, kind: 'asset', ...more })
const graph = new AssetGraph([
  asset('raw/orders'),
  asset('mart/revenue', { deps: [{ asset_key: 'raw/orders' }], tags: { stage: 'gold' } }),
  asset('mart/my-costs', { renamed_from: 'old/costs', tags: { stage: 'gold' } }),
])

describe('the assets that a sensor watches', () => {
  test('[A57] are named by key, with mart/* and *, which also mean assets to come, or by any selection of the present graph', () => {
    expect(watchedKeys(['raw/orders'], graph)).toEqual(['raw/orders'])
    expect(watchedKeys(['raw/*', 'new/*'], graph)).toEqual(['new/*', 'raw/*'])
    expect(watchedKeys(['+mart/revenue'], graph)).toEqual(['mart/revenue', 'raw/orders'])
    expect(watchedKeys(['tag:stage=gold and not key:mart/revenue'], graph)).toEqual(['mart/my-costs', 'old/costs'])
  })

  test('[A57] are watched under their former keys too, which tasks have that began before', () => {
    expect(watchedKeys(['mart/my-costs'], graph)).toEqual(['mart/my-costs', 'old/costs'])
    expect(watchedKeys(['mart/*'], graph)).toEqual(['mart/*', 'old/costs'])
    const taken = new AssetGraph([...graph.assets.values(), asset('old/costs')])
    expect(watchedKeys(['mart/my-costs'], taken), 'another asset has that key now').toEqual(['mart/my-costs'])
  })

  test('[A57] must exist, and a selection that needs the graph must be resolved before it is recorded', () => {
    expect(() => watchedKeys(['raw/order'], graph)).toThrow('asset "raw/order" not found')
    expect(() => watchedKeys(['tag:stage=lead'], graph)).toThrow(
      'tag:stage=lead selects no asset, so there is nothing to watch',
    )
    const sensor = { sensor_id: 's', sensor_name: 's', definition_hash: 'h', request_id: 'r' }
    const config = { type: 'asset', assets: ['raw/*', 'tag:stage=gold'] }
    const refused = SensorDefined.parse({ ...sensor, config })
    expect(refused.success ? '' : refused.error.message).toContain('tag:stage=gold\\" is neither an asset key nor like mart/*')
    expect(SensorDefined.parse({ ...sensor, config, watches: ['raw/*', 'mart/revenue'] }).success).toBe(true)
    expect(SensorDefined.parse({ ...sensor, config, watches: ['raw_*'] }).success).toBe(false)
    const hook = { type: 'webhook', path: 'hook', verify: 'none' }
    expect(SensorDefined.parse({ ...sensor, config: hook, watches: ['raw/*'] }).success).toBe(false)
  })
})
