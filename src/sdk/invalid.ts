import { assetKeyPattern } from '../contract/project-manifest.ts'
import { ServoError } from '../lib/error.ts'

/** An error in the code of an author; `hint` shows the correction. */
export function invalid(code: string, message: string, hint: string): ServoError {
  return new ServoError('invalid', code, message, { hint })
}

export const show = (value: unknown): string => {
  if (typeof value === 'function') return 'a function'
  return JSON.stringify(value) ?? String(value)
}

export function checkedName(name: unknown, kind: string): string {
  if (typeof name === 'string' && /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}$/.test(name)) return name
  throw invalid(
    'bad_name',
    `${show(name)} is not a valid name for a ${kind}`,
    'Use letters, digits, "_", "." and "-", for example \'shop-api\'.',
  )
}

export function checkedAssetKey(key: unknown, what = 'an asset key'): string {
  if (typeof key === 'string' && key.length <= 255 && assetKeyPattern.test(key)) return key
  const near =
    typeof key === 'string'
      ? key
          .trim()
          .replace(/[^A-Za-z0-9_.\-/]+/g, '_')
          .replace(/^[/_.-]+|\/+$/g, '')
      : ''
  throw invalid(
    'bad_asset_key',
    `${show(key)} is not ${what}`,
    `Write words of A-Z a-z 0-9 _ . - joined by "/", for example '${near !== '' && assetKeyPattern.test(near) ? near.slice(0, 255) : 'mart/revenue'}'.`,
  )
}
