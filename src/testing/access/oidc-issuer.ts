import { createServer } from 'node:http'
import { type CryptoKey, exportJWK, type GenerateKeyPairResult, generateKeyPair, type JWTPayload, SignJWT } from 'jose'

interface SignOptions {
  readonly kid?: string
  readonly key?: CryptoKey | Uint8Array
  readonly alg?: string
}

/** An issuer of OpenID Connect on a port of this machine. */
export class TestIssuer {
  readonly #server
  #pair: GenerateKeyPairResult
  #kid = 'k1'
  #url = ''
  /** How often its keys were asked for. */
  asked = 0
  /** What it answers instead of its documents. */
  status = 200
  /** What its discovery document says besides, or instead. */
  discovery: Record<string, unknown> = {}

  private constructor(pair: GenerateKeyPairResult) {
    this.#pair = pair
    this.#server = createServer(async (request, response) => {
      const isKeys = request.url === '/keys'
      if (isKeys) this.asked += 1
      const jwk = { ...(await exportJWK(this.#pair.publicKey)), kid: this.#kid, use: 'sig' }
      const found = { issuer: this.#url, jwks_uri: `${this.#url}/keys`, ...this.discovery }
      response.writeHead(this.status, { 'content-type': 'application/json', 'cache-control': 'max-age=300' })
      response.end(JSON.stringify(isKeys ? { keys: [{ kty: 'oct', k: 'AA', kid: 'secret' }, jwk] } : found))
    })
  }

  static async open(): Promise<TestIssuer> {
    const issuer = new TestIssuer(await generateKeyPair('RS256', { extractable: true }))
    await new Promise<void>((resolve) => issuer.#server.listen(0, '127.0.0.1', resolve))
    const address = issuer.#server.address()
    issuer.#url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
    return issuer
  }

  get url(): string {
    return this.#url
  }

  get publicKey(): CryptoKey {
    return this.#pair.publicKey
  }

  /** Signs with another key from now on, and publishes no other. */
  async rotate(kid: string): Promise<void> {
    this.#pair = await generateKeyPair('RS256', { extractable: true })
    this.#kid = kid
  }

  /** A token with these claims. */
  async sign(
    claims: JWTPayload,
    { kid = this.#kid, key = this.#pair.privateKey, alg = 'RS256' }: SignOptions = {},
  ): Promise<string> {
    return await new SignJWT({ iss: this.#url, ...claims }).setProtectedHeader({ alg, kid }).sign(key)
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }
}
