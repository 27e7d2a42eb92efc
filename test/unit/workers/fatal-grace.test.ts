import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { tempFolder } from '../../support/folder.ts'
import { freePort } from '../../support/ports.ts'
import { errorCode } from '../../../server/errors.ts'

const COMMONJS = fileURLToPath(new URL('../../fixtures/dies-on-request.cjs', import.meta.url))
const AROUND = new URL('../../fixtures/with-last-words.js', import.meta.url).href
const FOLDER = tempFolder()
const ES_MODULE = path.join(FOLDER, 'app.mjs')
writeFileSync(ES_MODULE, `import http from 'node:http'
http.createServer(async ({ url }, response) => {
\tif (url === '/native') return null.property
\tif (url === '/own-handler') process.on('uncaughtException', () => process.exit(7))
\tif (url === '/exits-meanwhile') process.once('uncaughtExceptionMonitor', () => setTimeout(() => process.exit(0), 20))
\tif (url === '/second') process.once('uncaughtExceptionMonitor', () => setTimeout(() => { throw new Error('second') }, 20))
\tif (url === '/aggregate') throw new AggregateError([new Error('one'), new TypeError('two')], 'several')
\tif (url === '/begun') response.write('half')
\tconst [, hostile] = url.split('/hostile-')
\tif (hostile) throw Object.defineProperty(new Error('hostile'), hostile.split('-')[0], { get () { if (hostile.endsWith('-text')) return { toString () { throw new Error('text') } }; if (hostile.endsWith('-symbol')) return Symbol('s'); throw new Error('getter') } })
\tif (url === '/exit-listener') process.on('exit', (code) => { console.error('exit with', code); process.exitCode = 9 })
\tsetTimeout(() => { throw new Error('lines\\nof text', { cause: new RangeError('why') }) }, 5)
}).listen(Number(process.env.PORT))
`)

/** One request that ends the server. */
async function die (app: string, url: string,
  { isPlain = false, graceMs = 40, flags = [] }: { isPlain?: boolean, graceMs?: number, flags?: string[] } = {})
{
  const port = await freePort()
  const crashFile = path.join(FOLDER, `${port}.json`)
  const child = spawn(process.execPath, [...flags, ...(isPlain ? [] : ['--import', AROUND]), app], {
    env: { ...process.env, PORT: String(port), CRASH_FILE: crashFile, GRACE_MS: String(graceMs) },
    stdio: ['ignore', 'ignore', 'pipe']
  })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text) => {
    stderr += text
  })
  const closed = once(child, 'close')
  const answer = await request(port, url, child)
  const timer = setTimeout(() => child.kill('SIGKILL'), url === '/lives' ? 0 : 20_000)
  const [code, signal] = await closed
  clearTimeout(timer)
  return { code, signal, answer, stderr: stderr.replaceAll(String(child.pid), '<pid>'),
    note: existsSync(crashFile) ? JSON.parse(readFileSync(crashFile, 'utf8')) : null }
}

async function request (port: number, url: string, child: ChildProcess): Promise<string> {
  for (;;) {
    const answer = await new Promise<string>((resolve) => {
      http.get({ port, path: url, agent: false }, (response) => {
        response.resume().on('end', () => resolve(`${response.statusCode} ${response.headers.connection}`)).on('error',
          (error) => resolve(String(errorCode(error))))
      }).on('error', (error) => resolve(String(errorCode(error))))
    })
    if (answer !== 'ECONNREFUSED' || child.exitCode !== null) return answer
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

const OF_COMMONJS = ['/throw-in-timer', '/throw-in-request', '/throw-string', '/throw-with-cause', '/reject',
  '/reject --unhandled-rejections=strict']
const OF_MODULE = [
  ...['code', 'stack', 'stack-text', 'name-text', 'message-symbol', 'stack-symbol'].map((how) => `/hostile-${how}`),
  '/throw',
  '/native',
  '/aggregate',
  '/own-handler',
  '/exit-listener'
]

for (const [app, words] of [...OF_COMMONJS.map((each) => [COMMONJS, each]),
  ...OF_MODULE.map((each) => [ES_MODULE, each])])
{
  const [url, ...flags] = words.split(' ')
  test(`${path.extname(app)} ${words} ends with the code and the text of plain node`, async () => {
    const [plain, ours] = await Promise.all([die(app, url, { isPlain: true, flags }), die(app, url, { flags })])
    assert.deepEqual({ code: ours.code, signal: ours.signal, stderr: ours.stderr }, { code: plain.code,
      signal: plain.signal, stderr: plain.stderr })
    if (url !== '/own-handler') assert.equal(ours.answer, '500 close')
    assert.ok(ours.note.errorName)
  })
}

test('a rejection that only warns is no crash', async () => {
  for (const mode of ['warn', 'none']) {
    const port = await freePort()
    const crashFile = path.join(FOLDER, `${port}.json`)
    const child = spawn(process.execPath, [`--unhandled-rejections=${mode}`, '--import', AROUND, COMMONJS], {
      env: { ...process.env, PORT: String(port), CRASH_FILE: crashFile, GRACE_MS: '40' },
      stdio: 'ignore'
    })
    assert.match(await request(port, '/', child), /^200/)
    const unanswered = http.get({ port, path: '/reject', agent: false }).on('error', () => {})
    await once(unanswered, 'finish')
    assert.match(await request(port, '/', child), /^200/)
    assert.equal(existsSync(crashFile), false)
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
})

test('a second exception, or an exit, ends the grace at once, with the end of the first', async () => {
  for (const url of ['/second', '/exits-meanwhile']) {
    const { code, stderr, note } = await die(ES_MODULE, url, { graceMs: 15_000 })
    assert.equal(code, 1, url)
    assert.match(stderr, /Error: lines\nof text/)
    assert.doesNotMatch(stderr, /second'?\)?\n +at/)
    assert.equal(note.errorMessage, 'lines\nof text')
  }
})

test('without a grace the process ends as ever, and an answer that has begun is cut where there is one', async () => {
  const [none, begun] = await Promise.all([die(COMMONJS, '/throw-in-request', { graceMs: 0 }),
    die(ES_MODULE, '/begun')])
  assert.equal(none.answer, 'ECONNRESET')
  assert.equal(none.code, 1)
  assert.equal(begun.answer, 'ECONNRESET')
})
