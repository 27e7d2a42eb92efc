import assert from 'node:assert/strict'
import http from 'node:http'
import { test, type TestContext } from 'node:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { startAdmin } from '../support/admin.ts'

const DECODERS = { br: brotliDecompressSync, gzip: gunzipSync }

async function setUp (
  t: TestContext
): Promise<
  (path: string, acceptEncoding: string | undefined) => Promise<{ headers: http.IncomingHttpHeaders, body: Buffer }>
> {
  const admin = await startAdmin(t)
  const Cookie = await admin.signIn()
  return (path, acceptEncoding) =>
    new Promise((resolve, reject) => {
      const headers = { Cookie, Accept: '*/*',
        ...(acceptEncoding !== undefined && { 'Accept-Encoding': acceptEncoding }) }
      http.get({ host: '127.0.0.1', port: admin.port, path, headers, agent: false }, async (response) => {
        const chunks = await response.toArray()
        resolve({ headers: response.headers, body: Buffer.concat(chunks) })
      }).on('error', reject)
    })
}

test('pages, files and answers come in the smallest encoding that is accepted', async (t) => {
  const get = await setUp(t)
  for (const path of ['/docs/api', '/assets/app.css', '/api/v1/openapi.json']) {
    const { headers: plainHeaders, body: plain } = await get(path, undefined)
    assert.equal(plainHeaders['content-encoding'], undefined, path)
    // The first is what browsers say, in their order.
    for (const [acceptEncoding, encoding] of [['gzip, deflate, br, zstd', 'br'], ['gzip', 'gzip'], ['gzip, br;q=0',
      'gzip'], ['*', 'br'], ['identity', null], ['br;q=0, gzip;q=0', null], ['zstd', null]] as const)
    {
      const { headers, body } = await get(path, acceptEncoding)
      assert.equal(headers['content-encoding'] ?? null, encoding, `${path}: ${acceptEncoding}`)
      assert.equal(Number(headers['content-length']), body.length)
      assert.match(String(headers.vary), /Accept-Encoding/)
      const decoded = encoding === null ? body : DECODERS[encoding](body)
      // A page counts its seconds.
      assert.equal(decoded.length, plain.length, `${path}: ${acceptEncoding}`)
      if (encoding !== null) assert.ok(body.length < plain.length / 3, `${path}: ${body.length} of ${plain.length}`)
    }
  }
})

test('who is not signed in gets files compressed, and nothing else', async (t) => {
  const admin = await startAdmin(t)
  const encodingOf = async (path: string) =>
    (await fetch(`http://127.0.0.1:${admin.port}${path}`, {
      headers: { 'Accept-Encoding': 'gzip, br', Accept: 'text/html' }
    })).headers.get('content-encoding')
  assert.deepEqual([await encodingOf('/assets/app.css'), await encodingOf('/sign-in')], ['br', null])
})
