// Files of PM2, each run by pm2-runtime, and imported and run by clusterdeck: `npm run ecosystems`, or `npm run ecosystems -- one-app.cjs`
// Every port is asked several times, and the answers are held against each other. The table goes to stdout.
import { spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { CLI, FIXTURES } from '../support/deck.js'
import { tempFolder } from '../support/folder.js'
import { createOwner } from '../support/owner.js'
import { freePort } from '../support/ports.js'

/** What is compared, with the name for --env where it has one, and how many ports an app counts up. @type {{ file: string, env?: string, counted?: number }[]} */
const FILES = [
  { file: 'one-app.cjs' },
  { file: 'cluster-max.cjs' },
  { file: 'several-apps.cjs' },
  { file: 'npm-script.cjs' },
  { file: 'npm-line.cjs' },
  { file: 'env-production.cjs', env: 'production' },
  { file: 'deploy.cjs', env: 'production' },
  { file: 'python-beside-node.cjs' },
  { file: 'functions.cjs' },
  { file: 'increment-port.cjs', counted: 3 },
  { file: 'services.yaml' },
  { file: 'services.json' },
  { file: 'quoted-args.cjs' },
  { file: 'graceful.cjs' }
]
const INSTALLED = path.join(import.meta.dirname, '.installed', 'pm2')
const PM2 = path.join(INSTALLED, 'node_modules', 'pm2', 'bin', 'pm2-runtime')
/** The ports of the fixtures. */
const PORT = /\b43\d\d\b/g
const ROUNDS = 6
const PATIENCE_MS = 20_000
const owner = createOwner()

/** @typedef {{ end: () => Promise<unknown>, output: () => string }} Running */

await install()
const names = process.argv.slice(2)
const chosen = FILES.filter(({ file }) => names.length === 0 || names.includes(file))
const rows = []
for (const each of chosen) {
  const row = await compare(each)
  rows.push(row)
  process.stderr.write(`${row.join(': ')}\n`)
}
console.log(['| file | apps asked | pm2-runtime and clusterdeck |', '| --- | --- | --- |', ...rows.map((row) => `| ${row.join(' | ')} |`)].join('\n'))
process.exitCode = rows.length > 0 && rows.every(([, , verdict]) => verdict === 'same answers') ? 0 : 1

/** Once. */
async function install () {
  if (existsSync(PM2)) return
  mkdirSync(INSTALLED, { recursive: true })
  writeFileSync(path.join(INSTALLED, 'package.json'), '{ "private": true }\n')
  await owner.run('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', 'pm2@7'], { cwd: INSTALLED })
}

/** @param {{ file: string, env?: string, counted?: number }} what @returns {Promise<[string, string, string]>} */
async function compare ({ file, env, counted = 1 }) {
  const folder = path.join(tempFolder(), 'app')
  cpSync(path.join(FIXTURES, 'ecosystems'), folder, { recursive: true })
  const ports = await withFreePorts(path.join(folder, file))
  const asked = ports.flatMap((port) => Array.from({ length: counted }, (_, index) => port + index))
  try {
    const byPm2 = await answersOf(startPm2(file, env, folder), asked)
    const byDeck = await answersOf(await startDecks(file, env, folder), asked)
    const differing = asked.filter((port) => byPm2[port] !== byDeck[port]).map((port) => `${byPm2[port]} and ${byDeck[port]}`)
    return [file, String(asked.length), differing.length === 0 ? 'same answers' : differing.join('; ')]
  } catch (/** @type {any} */ error) {
    return [file, String(asked.length), error.message]
  }
}

/** @param {string} file @returns {Promise<number[]>} those that it has instead of its own */
async function withFreePorts (file) {
  const text = readFileSync(file, 'utf8')
  const ports = new Map()
  for (const [port] of text.matchAll(PORT)) if (!ports.has(port)) ports.set(port, await freePort())
  writeFileSync(file, text.replace(PORT, (port) => String(ports.get(port))))
  return [...ports.values()]
}

/** @param {string} file @param {string | undefined} env @param {string} cwd @returns {Running} */
function startPm2 (file, env, cwd) {
  // By this name PM2 knows that it is a file of its own.
  const known = path.join(cwd, /\.c?js$/.test(file) ? `pm2.config${path.extname(file)}` : file)
  if (known !== path.join(cwd, file)) cpSync(path.join(cwd, file), known)
  return start([PM2, 'start', known, ...(env ? ['--env', env] : [])], cwd, { PM2_HOME: tempFolder() })
}

/** As the import says. @param {string} file @param {string | undefined} env @param {string} cwd @returns {Promise<Running>} */
async function startDecks (file, env, cwd) {
  const { stdout, stderr } = await owner.run(process.execPath, [CLI, 'import', file, ...(env ? ['--env', env] : [])], { cwd })
  const isUp = /clusterdeck up\b/.test(stdout + stderr)
  return start([CLI, isUp ? 'up' : 'start'], cwd, { CLUSTERDECK_ADMIN_PORT: '0' })
}

/** @param {string[]} words @param {string} cwd @param {Record<string, string>} [env] @returns {Running} */
function start (words, cwd, env = {}) {
  const child = spawn(process.execPath, words, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => { output = (output + text).slice(-2000) })
  return { output: () => output, end: owner.spawned(child) }
}

/** @param {Running} running @param {number[]} ports @returns {Promise<Record<number, string>>} all different answers of each */
async function answersOf (running, ports) {
  try {
    const entries = []
    for (const port of ports) entries.push([port, await answersOfPort(port)])
    return Object.fromEntries(entries)
  } catch (error) {
    throw new Error(`${/** @type {Error} */ (error).message}: ${running.output().trim().split('\n').slice(-2).join(' ')}`, { cause: error })
  } finally {
    await running.end()
  }
}

/** @param {number} port @returns {Promise<string>} */
async function answersOfPort (port) {
  const first = await firstAnswer(port)
  const others = await Promise.all(Array.from({ length: ROUNDS }, () => ask(port)))
  return [...new Set([first, ...others])].sort().join(' or ')
}

/** @param {number} port @returns {Promise<string>} */
async function firstAnswer (port) {
  const end = performance.now() + PATIENCE_MS
  for (;;) {
    try {
      return await ask(port)
    } catch (error) {
      // It does not listen yet.
      if (performance.now() > end) throw new Error(`nobody answers on port ${port}`, { cause: error })
      await wait(100)
    }
  }
}

/** @param {number} port @returns {Promise<string>} */
async function ask (port) {
  const answer = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' }, signal: AbortSignal.timeout(2000) })
  const { args, ...rest } = /** @type {any} */ (await answer.json())
  return JSON.stringify({ args: isOfRuntime(args) ? args.slice(2) : args, ...rest })
}

/** In cluster mode pm2-runtime hands its own first words on to the app; the daemon of PM2 does not. @param {string[]} args */
function isOfRuntime ([word, file]) {
  return word === 'start' && path.isAbsolute(file ?? '')
}
