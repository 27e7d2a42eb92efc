// Can a deploy be taken back, and is nothing said that is not so? `npm run take-back [-- express next …] [--layouts in-place,link,folder]`
// Each program, built anew for each version, is deployed in each layout, deployed broken, rolled back, and loses a worker and its source.
// After each step every worker is asked: one that is called r2 has to answer as r2 did. The table goes to stdout, progress to stderr.
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { runCliHere } from '../support/cli-here.js'
import { startDeck } from '../support/deck.js'
import { tempFolder } from '../support/folder.js'
import { freePort } from '../support/ports.js'
import { install } from './installation.js'
import { PROGRAMS } from './programs.js'
import { toTable } from './report.js'

/** @typedef {import('./programs.js').Program} Program */
/** @typedef {{ program: string, layout: string, steps: Record<string, string>, problems: string[] }} Row */
/** @typedef {Awaited<ReturnType<typeof begin>>} Trial */

const DEFAULT = ['express', 'nest', 'next', 'nuxt', 'sveltekit', 'react-router', 'astro', 'nitro', 'pnpm-workspace', 'yarn-pnp']
const LAYOUTS = ['in-place', 'link', 'folder']
const WORKERS = 2
const ASKED = 12
const run = promisify(execFile)

const { values: { layouts }, positionals } = parseArgs({ allowPositionals: true, options: { layouts: { type: 'string', default: LAYOUTS.join() } } })
/** @type {Row[]} */
const rows = []
for (const name of positionals.length > 0 ? positionals : DEFAULT) {
  const program = PROGRAMS.find((each) => each.name === name)
  if (!program) throw new Error(`expected one of ${PROGRAMS.map((each) => each.name).join(', ')}, received ${name}`)
  const { folder } = await install(program)
  for (const layout of layouts.split(',')) {
    process.stderr.write(`${name}, ${layout} … `)
    const row = await tryOut(program, layout, folder)
    rows.push(row)
    process.stderr.write(`${Object.entries(row.steps).map((each) => each.join(': ')).join('; ')}; ${row.problems.join('; ') || 'all true'}\n`)
  }
}
const titles = Object.keys(Object.assign({}, ...rows.map(({ steps }) => steps)))
console.log(toTable(['program', 'layout', ...titles, 'not true'], rows.map(({ program, layout, steps, problems }) => [program, layout, ...titles.map((title) => steps[title]), problems.join('; ') || null])))
process.exitCode = rows.every(({ problems }) => problems.length === 0) ? 0 : 1

/** @param {Program} program @param {string} layout @param {string} installed @returns {Promise<Row>} */
async function tryOut (program, layout, installed) {
  /** @type {(() => unknown)[]} */
  const ends = []
  /** @type {Row} */
  const row = { program: program.name, layout, steps: {}, problems: [] }
  try {
    const trial = await begin(program, layout, { installed, row, owner: { after: (/** @type {any} */ end) => { ends.push(end) } } })
    await look(trial, 'start')
    await deploy(trial, 'deploy', { version: 'two' })
    await deploy(trial, 'broken deploy', { version: 'three', isBroken: true })
    await rollBack(trial)
    await loseWorker(trial)
    await loseSource(trial)
  } catch (/** @type {any} */ error) {
    row.problems.push(String(error.message).slice(0, 300))
  }
  for (const end of ends) await Promise.resolve(end()).catch((error) => row.problems.push(error.message))
  return row
}

/** @param {Program} program @param {string} layout @param {{ installed: string, row: Row, owner: import('../support/deck.js').TestOwner }} parts */
async function begin (program, layout, { installed, row, owner }) {
  const root = tempFolder()
  const source = path.join(root, 'source')
  await copy(installed, source)
  rmSync(path.join(source, '.stamp'), { force: true })
  const port = await freePort()
  const place = { folder: source, port, secondPort: port, state: tempFolder(), socket: '', upstream: '' }
  await build(program, source, 'one')
  const home = layout === 'link' ? path.join(root, 'current') : source
  if (layout === 'link') await switchTo(root, source, 'one')
  const { entry, start = [], flags, args, env } = program
  const deck = await startDeck(owner, entry ? path.join(home, entry) : null, {
    workers: WORKERS,
    cwd: home,
    flags: [...start, ...flags?.(place) ?? [], '--drain-idle-grace-ms', '200', '--rollout-guard-ms', '0', '--rollout-min-ready-ms', '1500', ...layout === 'folder' ? ['--releases-mode', 'folder'] : []],
    args: args?.(place) ?? [],
    // A service manager sets no PWD. Without one, nothing but the path of the entry names the link.
    env: { PWD: entry ? undefined : home, PORT: String(port), GALLERY_STATE: place.state, NODE_ENV: undefined, ...env?.(place) }
  })
  await deck.until({ ready: WORKERS })
  return { program, layout, root, source, home, port, deck, row, current: /** @type {string} */ ('one'), versions: /** @type {Record<string, string>} */ ({ r1: 'one' }) }
}

/** @param {string} from @param {string} to as it is, with its links */
async function copy (from, to) {
  await run('cp', ['-a', '--reflink=auto', from, to])
}

/** Writes a version into the code, and builds it. @param {Program} program @param {string} folder @param {string} version */
async function build ({ name, build: commands = [] }, folder, version) {
  const mark = new RegExp(`hello from ${name}(?: [a-z]+)?(?=,|')`)
  const file = filesOf(folder).find((each) => mark.test(readFileSync(each, 'utf8')))
  if (!file) throw new Error(`no file of ${folder} says hello`)
  writeFileSync(file, readFileSync(file, 'utf8').replace(mark, `hello from ${name} ${version}`))
  for (const [command, ...args] of commands) await run(path.join(folder, 'node_modules/.bin', command), args, { cwd: folder, maxBuffer: 64 * 1024 * 1024 })
}

/** @param {string} folder @returns {string[]} what a person has written */
function filesOf (folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((each) => {
    const file = path.join(folder, each.name)
    if (each.isDirectory()) return each.name.startsWith('.') || ['node_modules', 'dist', 'build'].includes(each.name) ? [] : filesOf(file)
    return each.isFile() && /\.(?:[cm]?[jt]sx?|vue|svelte|astro)$/.test(each.name) && !each.name.startsWith('.') ? [file] : []
  })
}

/** @param {string} root @param {string} source @param {string} version */
async function switchTo (root, source, version) {
  await copy(source, path.join(root, version))
  symlinkSync(version, path.join(root, 'next'))
  renameSync(path.join(root, 'next'), path.join(root, 'current'))
}

/** @param {Trial} trial @param {string} step @param {{ version: string, isBroken?: boolean }} how */
async function deploy (trial, step, { version, isBroken = false }) {
  const { program, layout, source, root, deck } = trial
  await build(program, source, version)
  if (isBroken) breakIt(program, source)
  if (layout === 'link') await switchTo(root, source, version)
  const said = await tell(trial, ['deploy'])
  const { release } = await deck.status()
  if (said.code === 0) {
    trial.current = version
    trial.versions[release.id] = version
  }
  if ((said.code === 0) === isBroken) trial.row.problems.push(`${step}: ${said.text}`)
  await look(trial, step, said)
}

/** @param {Program} program @param {string} folder */
function breakIt ({ entry, start }, folder) {
  for (const file of ['.next/BUILD_ID', 'build/server/index.js', ...(entry && !entry.startsWith('node_modules') ? [entry] : []), ...(start ? ['web.cjs'] : [])]) {
    const broken = path.join(folder, file)
    if (!existsSync(broken)) continue
    if (file.endsWith('BUILD_ID')) rmSync(broken)
    else writeFileSync(broken, "throw new Error('broken')\n")
    return
  }
  throw new Error('nothing to break')
}

/** @param {Trial} trial */
async function rollBack (trial) {
  const said = await tell(trial, ['rollback', 'r1'])
  if (said.code === 0) trial.current = 'one'
  else if (trial.layout !== 'in-place') trial.row.problems.push(`rollback: ${said.text}`)
  await look(trial, 'rollback', said)
}

/** @param {Trial} trial */
async function loseWorker (trial) {
  const { workers: [{ pid }], lastEventId } = await trial.deck.status()
  process.kill(pid, 'SIGKILL')
  await trial.deck.untilEvent(({ id, type, ...event }) => id > lastEventId && (type === 'worker.ready' || (type === 'worker.exited' && event.pid !== pid)), 'what becomes of the next worker')
  await look(trial, 'worker killed')
}

/** @param {Trial} trial */
async function loseSource (trial) {
  for (const name of readdirSync(trial.source)) rmSync(path.join(trial.source, name), { recursive: true })
  await look(trial, 'source removed', await tell(trial, ['restart']))
}

/** @param {Trial} trial @param {string[]} words @returns {Promise<{ code: number, text: string }>} what a person is told */
async function tell ({ deck, home }, words) {
  const { code, stdout, stderr } = await runCliHere([...words, '--wait', '--data-dir', deck.folder], { cwd: existsSync(home) ? home : '/' })
  return { code, text: `${stderr}${stdout}`.trim().split('\n').at(-1) ?? '' }
}

/**
 * Asks all workers, and holds their answers against what they are called.
 * @param {Trial} trial @param {string} step @param {{ code: number, text: string }} [said]
 */
async function look ({ port, deck, row, versions, current }, step, said) {
  const answers = await askAll(port)
  const { workers } = await deck.status()
  const called = workers.filter((/** @type {any} */ { state }) => state === 'ready')
  for (const { pid, release, drifted } of called) {
    const version = answers.get(pid)
    if (version !== undefined && version !== versions[release] && !drifted) row.problems.push(`${step}: a worker called ${release} (${versions[release]}) answers ${version}`)
  }
  const claimed = /\b(?:succeeded|rolled-back|failed|refused)\b/.exec(said?.text ?? '')?.[0]
  const others = [...new Set(answers.values())].filter((version) => version !== current)
  if (['succeeded', 'rolled-back'].includes(String(claimed)) && others.length > 0) row.problems.push(`${step}: ${claimed}, but ${others.join()} is answered`)
  row.steps[step] = `${[...new Set(answers.values())].join()}${said ? ` (${said.code}${claimed ? `, ${claimed}` : ''})` : ''}`
}

/** @param {number} port @returns {Promise<Map<number, string>>} the version by the pid of who answers; or what else was answered */
async function askAll (port) {
  const answers = new Map()
  for (let n = 0; n < ASKED; n++) {
    const text = await ask(port)
    const [, version] = /hello from \S+ ([a-z]+)/.exec(text) ?? []
    answers.set(Number(/\bpid (?:<!--.*?-->)?(\d+)/.exec(text)?.[1] ?? -n), version ?? text.slice(0, 40))
  }
  return answers
}

/** @param {number} port @returns {Promise<string>} */
async function ask (port) {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } })
    return response.ok ? await response.text() : `status ${response.status}`
  } catch (/** @type {any} */ error) {
    return `no answer: ${error.cause?.code ?? error.message}`
  }
}
