// Files of PM2, each run by pm2-runtime, and imported and run by clusterdeck: `npm run ecosystems`, or `npm run
// ecosystems -- one-app.cjs` Every port is asked several times, and the answers are held against each other. The table
// goes to stdout.
import { spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { errorText } from '../../server/errors.ts'
import { CLI, FIXTURES } from '../support/deck.ts'
import { tempFolder } from '../support/folder.ts'
import { createOwner } from '../support/owner.ts'
import { freePort } from '../support/ports.ts'

/** What is compared, with the name for --env where it has one, and how many ports an app counts up. */
const FILES: { file: string, env?: string, counted?: number }[] = [{ file: 'one-app.cjs' }, { file: 'cluster-max.cjs' },
  { file: 'several-apps.cjs' }, { file: 'npm-script.cjs' }, { file: 'npm-line.cjs' }, { file: 'env-production.cjs',
  env: 'production' }, { file: 'deploy.cjs', env: 'production' }, { file: 'python-beside-node.cjs' }, {
  file: 'functions.cjs'
}, { file: 'increment-port.cjs', counted: 3 }, { file: 'services.yaml' }, { file: 'services.json' }, {
  file: 'quoted-args.cjs'
}, { file: 'graceful.cjs' }]
const INSTALLED = path.join(import.meta.dirname, '.installed', 'pm2')
const PM2 = path.join(INSTALLED, 'node_modules', 'pm2', 'bin', 'pm2-runtime')
/** The ports of the fixtures. */
const PORT = /\b43\d\d\b/g
const ROUNDS = 6
const PATIENCE_MS = 20_000
const owner = createOwner()

type Running = { end: () => Promise<unknown>, output: () => string }

await install()
const names = process.argv.slice(2)
const chosen = FILES.filter(({ file }) => names.length === 0 || names.includes(file))
const rows = []
for (const each of chosen) {
  const row = await compare(each)
  rows.push(row)
  process.stderr.write(`${row.join(': ')}\n`)
}
console.log(
  ['| file | apps asked | pm2-runtime and clusterdeck |', '| --- | --- | --- |', ...rows.map((row) =>
    `| ${row.join(' | ')} |`
  )].join('\n')
)
process.exitCode = rows.length > 0 && rows.every(([, , verdict]) => verdict === 'same answers') ? 0 : 1

/** Once. */
async function install () {
  if (existsSync(PM2)) return
  mkdirSync(INSTALLED, { recursive: true })
  writeFileSync(path.join(INSTALLED, 'package.json'), '{ "private": true }\n')
  await owner.run('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', 'pm2@7'], { cwd: INSTALLED })
}

async function compare (
  { file, env, counted = 1 }: { file: string, env?: string, counted?: number }
): Promise<[string, string, string]> {
  const folder = path.join(tempFolder(), 'app')
  cpSync(path.join(FIXTURES, 'ecosystems'), folder, { recursive: true })
  const ports = await withFreePorts(path.join(folder, file))
  const asked = ports.flatMap((port) => Array.from({ length: counted }, (_, index) => port + index))
  try {
    const byPm2 = await answersOf(startPm2(file, env, folder), asked)
    const byDeck = await answersOf(await startDecks(file, env, folder), asked)
    const differing = asked.filter((port) => byPm2[port] !== byDeck[port]).map((port) =>
      `${byPm2[port]} and ${byDeck[port]}`
    )
    return [file, String(asked.length), differing.length === 0 ? 'same answers' : differing.join('; ')]
  } catch (error) {
    return [file, String(asked.length), errorText(error)]
  }
}

/** @returns those that it has instead of its own */
async function withFreePorts (file: string): Promise<number[]> {
  const text = readFileSync(file, 'utf8')
  const ports = new Map()
  for (const [port] of text.matchAll(PORT)) if (!ports.has(port)) ports.set(port, await freePort())
  writeFileSync(file, text.replace(PORT, (port) => String(ports.get(port))))
  return [...ports.values()]
}

function startPm2 (file: string, env: string | undefined, cwd: string): Running {
  // By this name PM2 knows that it is a file of its own.
  const known = path.join(cwd, /\.c?js$/.test(file) ? `pm2.config${path.extname(file)}` : file)
  if (known !== path.join(cwd, file)) cpSync(path.join(cwd, file), known)
  return start([PM2, 'start', known, ...(env ? ['--env', env] : [])], cwd, { PM2_HOME: tempFolder() })
}

/** As the import says. */
async function startDecks (file: string, env: string | undefined, cwd: string): Promise<Running> {
  const { stdout, stderr } = await owner.run(process.execPath, [CLI, 'import', file, ...(env ? ['--env', env] : [])], {
    cwd
  })
  const isUp = /clusterdeck up\b/.test(stdout + stderr)
  return start([CLI, isUp ? 'up' : 'start'], cwd, { CLUSTERDECK_ADMIN_PORT: '0' })
}

function start (words: string[], cwd: string, env: Record<string, string> = {}): Running {
  const child = spawn(process.execPath, words, { cwd, env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      output = (output + text).slice(-2000)
    })
  return { output: () => output, end: owner.spawned(child) }
}

/** @returns all different answers of each */
async function answersOf (running: Running, ports: number[]): Promise<Record<number, string>> {
  try {
    const entries = []
    for (const port of ports) entries.push([port, await answersOfPort(port)])
    return Object.fromEntries(entries)
  } catch (error) {
    throw new Error(`${(error as Error).message}: ${running.output().trim().split('\n').slice(-2).join(' ')}`, {
      cause: error
    })
  } finally {
    await running.end()
  }
}

async function answersOfPort (port: number): Promise<string> {
  const first = await firstAnswer(port)
  const others = await Promise.all(Array.from({ length: ROUNDS }, () => ask(port)))
  return [...new Set([first, ...others])].sort().join(' or ')
}

async function firstAnswer (port: number): Promise<string> {
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

async function ask (port: number): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' },
    signal: AbortSignal.timeout(2000) })
  const { args, ...rest } = await answer.json() as { args: string[] }
  return JSON.stringify({ args: isOfRuntime(args) ? args.slice(2) : args, ...rest })
}

/** In cluster mode pm2-runtime hands its own first words on to the app; the daemon of PM2 does not. */
function isOfRuntime ([word, file]: string[]) {
  return word === 'start' && path.isAbsolute(file ?? '')
}
