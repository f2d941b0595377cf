import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Heap } from './heap.ts'

test('what is taken out comes in order, whatever was put in between', () => {
  const steps = fc.array(fc.oneof(fc.integer(), fc.constant('take' as const)))
  fc.assert(
    fc.property(steps, (given) => {
      const heap = new Heap<number>((a, b) => a < b)
      const model: number[] = []
      for (const step of given) {
        if (step === 'take') expect(heap.pop()).toBe(model.shift())
        else {
          heap.push(step)
          model.push(step)
          model.sort((a, b) => a - b)
        }
        expect(heap.size).toBe(model.length)
        expect(heap.peek()).toBe(model[0])
      }
    }),
  )
})
