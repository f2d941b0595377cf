/** What users of the package import. The SDK for declaring assets joins here. */
export { type ErrorKind, isServoError, type ServoError } from './lib/error.ts'
