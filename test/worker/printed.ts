/** What code prints that prints too much: many times what is kept of it, and more than memory may grow meanwhile. */
export const PRINTED_MB = Number(process.env['SERVO_PRINTED_MB'] ?? 200)
