import { z } from 'zod'

export const Order = z.object({
  id: z.string(),
  customer: z.string(),
  region: z.enum(['eu', 'us', 'apac']),
  product: z.string(),
  quantity: z.number(),
  ordered_at: z.date(),
})

export const Product = z.object({ product: z.string(), price: z.number(), category: z.string() })
