import { daily, keys, multi, resource } from 'servo-flow'
import { z } from 'zod'

export const day = daily({ start: '2025-01-01', timezone: 'Europe/Paris' })
export const region = keys(['eu', 'us', 'apac'])
export const market = multi({ day, region }) // key: { day, region }

export const Region = z.enum(['eu', 'us', 'apac'])
export const Order = z.object({ id: z.string(), region: Region, amount: z.number(), at: z.date() })

export const shop = resource('shop-api', {
  config: z.object({ url: z.url(), token: z.string() }), // from SERVO_SHOP_API_URL, _TOKEN
  open: ({ url, token }) => ({
    async orders(region: string, from: Date, to: Date): Promise<z.infer<typeof Order>[]> {
      const q = new URLSearchParams({ region, from: from.toISOString(), to: to.toISOString() })
      const res = await fetch(`${url}/orders?${q}`, { headers: { authorization: token } })
      return z.array(Order).parse(await res.json())
    },
  }),
})
