/*
 * One task after the other, for both sides.
 */

/** A module with assets `<name>/0`, `<name>/1` …, each after the one before; `body` is what they return. */
export function chainOfAssets(name: string, length: number, body = 'undefined', preamble = ''): string {
  return `import { asset } from 'servo-flow'
${preamble}
export const chain = []
for (let i = 0; i < ${length}; i++)
  chain.push(asset('${name}/' + i, { deps: chain.slice(-1), run: () => ${body} }))
`
}

/** A module whose assets each read the value of the one before and add one to it. */
export function chainOfValues(name: string, length: number): string {
  return `import { asset } from 'servo-flow'
export const chain = [asset('${name}/0', { run: () => 1 })]
for (let i = 1; i < ${length}; i++)
  chain.push(asset('${name}/' + i, { inputs: { before: chain[i - 1] }, run: ({ before }) => before + 1 }))
`
}
