// Can a deploy be taken back, and is nothing said that is not so? `npm run take-back [-- express next …] [--layouts
// in-place,link,folder,git]` Each program, built anew for each version, is deployed in each layout, deployed broken,
// rolled back, and loses a worker and its source. In the layout git each version is a commit, which the deploy installs
// from its lock file and builds; packages that take minutes to compile are linked by hooks.build. Where a program
// writes into its folder, its release folders share that; a deploy of one that do not has to be refused. After each
// step every worker is asked: one that is called r2 has to answer as r2 did. The table goes to stdout, progress to
// stderr.
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { errorCode, errorText } from '../../server/errors.ts'
import { runCliHere } from '../support/cli-here.ts'
import { startDeck, type TestOwner } from '../support/deck.ts'
import { tempFolder } from '../support/folder.ts'
import { createOwner } from '../support/owner.ts'
import { freePort } from '../support/ports.ts'
import { present } from '../support/present.ts'
import { createRepository } from '../support/repository.ts'
import { breakProgram } from './break-program.ts'
import { install } from './installation.ts'
import { PROGRAMS, type Program } from './programs.ts'
import { toTable } from './report.ts'

type Row = { program: string, layout: string, steps: Record<string, string>, problems: string[] }
type Trial = Awaited<ReturnType<typeof begin>>

/** The layouts in which each release has a folder of its own. */
const OWN_FOLDERS = ['folder', 'git']
const DEFAULT = ['express', 'nest', 'next', 'nuxt', 'sveltekit', 'react-router', 'astro', 'nitro', 'strapi',
  'pnpm-workspace', 'yarn-pnp']
const LAYOUTS = ['in-place', 'link', 'folder', 'git']
const WORKERS = 2
const ASKED = 12
/** Files and folders that are in no commit of a program. */
const IGNORED = ['node_modules', '.stamp', 'dist', 'build', '.next', '.nuxt', '.output', '.svelte-kit', '.react-router',
  '.astro', '.pnp.*', '.yarn', '.tmp', 'public/uploads']
const CLAIM = /\b(?:succeeded|rolled-back|failed|refused)\b/
const BREAK = path.join(import.meta.dirname, 'break-program.ts')
const run = promisify(execFile)

const { values: { layouts }, positionals } = parseArgs({ allowPositionals: true,
  options: { layouts: { type: 'string', default: LAYOUTS.join() } } })
const rows: Row[] = []
for (const name of positionals.length > 0 ? positionals : DEFAULT) {
  const program = PROGRAMS.find((each) => each.name === name)
  if (!program) throw new Error(`expected one of ${PROGRAMS.map((each) => each.name).join(', ')}, received ${name}`)
  const { folder } = await install(program)
  for (const layout of layouts.split(',')) {
    process.stderr.write(`${name}, ${layout} … `)
    const trials = [true, ...(program.writes && OWN_FOLDERS.includes(layout) ? [false] : [])]
    for (const isShared of trials) rows.push(await tryOut(program, layout, { installed: folder, isShared }))
    for (const row of rows.slice(-trials.length))
      process.stderr.write(
        `${Object.entries(row.steps).map((each) => each.join(': ')).join('; ')}; ${
          row.problems.join('; ') || 'all true'
        }\n`
      )
  }
}
const titles = Object.keys(Object.assign({}, ...rows.map(({ steps }) => steps)))
console.log(
  toTable(['program', 'layout', ...titles, 'not true'],
    rows.map(({ program, layout, steps, problems }) => [program, layout, ...titles.map((title) =>
      steps[title]
    ), problems.join('; ') || null]))
)
process.exitCode = rows.every(({ problems }) => problems.length === 0) ? 0 : 1

async function tryOut (program: Program, layout: string,
  { installed, isShared }: { installed: string, isShared: boolean }): Promise<Row>
{
  const owner = createOwner()
  const row: Row = { program: program.name, layout: isShared ? layout : `${layout}, nothing shared`, steps: {},
    problems: [] }
  try {
    const trial = await begin(program, layout, { installed, isShared, row, owner })
    await look(trial, 'start')
    if (!isShared) await beRefused(trial)
    else await goThrough(trial)
  } catch (error) {
    row.problems.push(errorText(error).slice(0, 300))
  }
  await owner.end().catch((error) => row.problems.push(error.message))
  return row
}

async function goThrough (trial: Trial) {
  if (trial.layout === 'git') await deployFirst(trial)
  await deploy(trial, 'deploy', { version: 'two' })
  await deploy(trial, 'broken deploy', { version: 'three', isBroken: true })
  await rollBack(trial)
  await loseWorker(trial)
  await loseSource(trial)
}

async function begin (program: Program, layout: string,
  { installed, isShared, row, owner }: { installed: string, isShared: boolean, row: Row, owner: TestOwner })
{
  const root = tempFolder()
  const source = path.join(root, 'source')
  await copy(installed, source)
  rmSync(path.join(source, '.stamp'), { force: true })
  const port = await freePort()
  const place = { folder: source, port, secondPort: port, state: tempFolder(), socket: '', upstream: '' }
  await build(program, source, 'one')
  const repository = layout === 'git' ? createRepository(source) : null
  const home = layout === 'link' ? path.join(root, 'current') : source
  if (layout === 'link') await switchTo(root, source, 'one')
  const { entry, start = [], flags, args, env, writes, compiles } = program
  const deck = await startDeck(owner, entry ? path.join(home, entry) : null, {
    workers: WORKERS,
    cwd: home,
    flags: [...start, ...flags?.(place) ?? [], '--drain-idle-grace-ms', '200', '--rollout-guard-ms', '0',
      '--rollout-min-ready-ms', '1500', ...layout === 'folder' ? ['--releases-mode', 'folder'] : [],
      ...layout === 'git' && compiles ? ['--config', linkPackages(root, installed)] : [],
      ...isShared && writes && OWN_FOLDERS.includes(layout) ? ['--releases-shared', writes.join(' ')] : []],
    args: args?.(place) ?? [],
    // A service manager sets no PWD. Without one, nothing but the path of the entry names the link.
    env: { PATH: await pathFor(program, layout), PWD: entry ? undefined : home, PORT: String(port),
      GALLERY_STATE: place.state, NODE_ENV: undefined, ...env?.(place) }
  })
  await deck.until({ ready: WORKERS })
  return { program, layout, root, source, repository, home, port, deck, row, current: 'one' as string, first: 'r1',
    versions: { r1: 'one' } as Record<string, string> }
}

/** @returns a config file */
function linkPackages (root: string, installed: string): string {
  const file = path.join(root, 'clusterdeck.config.json')
  writeFileSync(file,
    JSON.stringify({
      hooks: { build: { command: ['cp', '--archive', '--link', path.join(installed, 'node_modules'), '.'] } }
    }))
  return file
}

/** @returns the PATH, with the package manager that the build of a commit calls */
async function pathFor ({ manager }: Program, layout: string): Promise<string> {
  const inherited = String(process.env.PATH)
  if (!manager || layout !== 'git') return inherited
  const { stdout } = await run('npx', ['--yes', '--package', manager[0], '--call', `command -v ${manager[1]}`])
  return [path.dirname(stdout.trim()), inherited].join(path.delimiter)
}

/** `to`: as it is, with its links */
async function copy (from: string, to: string) {
  await run('cp', ['-a', '--reflink=auto', from, to])
}

/** Writes a version into the code, and builds it. */
async function build (program: Program, folder: string, version: string) {
  writeVersion(program, folder, version)
  for (const [command, ...args] of program.build ?? [])
    await run(path.join(folder, 'node_modules/.bin', command), args, { cwd: folder, maxBuffer: 64 * 1024 * 1024 })
}

function writeVersion ({ name }: Program, folder: string, version: string) {
  const mark = new RegExp(`hello from ${name}(?: [a-z]+)?(?=,|')`)
  const file = filesOf(folder).find((each) => mark.test(readFileSync(each, 'utf8')))
  if (!file) throw new Error(`no file of ${folder} says hello`)
  writeFileSync(file, readFileSync(file, 'utf8').replace(mark, `hello from ${name} ${version}`))
}

/** Commits a version, with the build as a script of its package.json. */
function commit ({ program, source, repository }: Trial,
  { version, isBroken }: { version: string, isBroken: boolean })
{
  writeVersion(program, source, version)
  if (isBroken && !program.build) breakProgram(program, source)
  const { scripts, ...rest } = JSON.parse(readFileSync(path.join(source, 'package.json'), 'utf8'))
  const commands = [...(program.build ?? []).map((words) => words.join(' ')),
    ...(isBroken ? [`node '${BREAK}' ${program.name}`] : [])]
  repository?.commit({
    'package.json': JSON.stringify({ ...rest,
      scripts: { ...scripts, ...(program.build && { build: commands.join(' && ') }) } }, null, 2),
    '.gitignore': IGNORED.join('\n')
  }, version)
}

/** @returns what a person has written */
function filesOf (folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((each) => {
    const file = path.join(folder, each.name)
    if (each.isDirectory())
      return each.name.startsWith('.') || ['node_modules', 'dist', 'build'].includes(each.name) ? [] : filesOf(file)
    return each.isFile() && /\.(?:[cm]?[jt]sx?|vue|svelte|astro)$/.test(each.name) && !each.name.startsWith('.')
      ? [file]
      : []
  })
}

async function switchTo (root: string, source: string, version: string) {
  await copy(source, path.join(root, version))
  symlinkSync(version, path.join(root, 'next'))
  renameSync(path.join(root, 'next'), path.join(root, 'current'))
}

/** The start has run from the folder of the app, so the first release of a commit is the second one. */
async function deployFirst (trial: Trial) {
  await deploy(trial, 'first deploy', { version: 'one' })
  trial.first = (await trial.deck.status()).release.id
}

async function deploy (trial: Trial, step: string,
  { version, isBroken = false }: { version: string, isBroken?: boolean })
{
  const { program, layout, source, root, deck } = trial
  if (layout === 'git') commit(trial, { version, isBroken })
  else await build(program, source, version)
  if (layout !== 'git' && isBroken) breakProgram(program, source)
  if (layout === 'link') await switchTo(root, source, version)
  const said = await deployAs(trial)
  const { release } = await deck.status()
  if (said.code === 0) {
    trial.current = version
    trial.versions[release.id] = version
    if (layout === 'git' && release.git?.subject !== version)
      trial.row.problems.push(`${step}: ${release.id} is called ${release.git?.subject}`)
  }
  if ((said.code === 0) === isBroken || (isBroken && !/failed/.test(said.text)))
    trial.row.problems.push(`${step}: ${said.text}`)
  await look(trial, step, said)
}

/** `trial`: of a program whose releases would each have a database of their own */
async function beRefused (trial: Trial) {
  const { layout, program, source, row } = trial
  if (layout === 'git') commit(trial, { version: 'two', isBroken: false })
  else await build(program, source, 'two')
  const said = await deployAs(trial)
  if (said.code === 0 || !said.text.includes('releases.shared'))
    row.problems.push(`deploy: expected a refusal, received ${said.text}`)
  await look(trial, 'deploy', { ...said, text: said.code === 4 ? 'refused' : said.text })
}

function deployAs (trial: Trial) {
  return tell(trial, ['deploy', ...trial.layout === 'git' ? ['--git', 'main', '--yes'] : []])
}

async function rollBack (trial: Trial) {
  const said = await tell(trial, ['rollback', trial.first])
  if (said.code === 0) trial.current = 'one'
  else if (trial.layout !== 'in-place') trial.row.problems.push(`rollback: ${said.text}`)
  await look(trial, 'rollback', said)
}

async function loseWorker (trial: Trial) {
  const { workers: [{ pid }], lastEventId } = await trial.deck.status()
  process.kill(present(pid), 'SIGKILL')
  await trial.deck.untilEvent(
    ({ id, type, ...event }) =>
      id > lastEventId && (type === 'worker.ready' || (type === 'worker.exited' && event.pid !== pid)),
    'what becomes of the next worker'
  )
  await look(trial, 'worker killed')
}

async function loseSource (trial: Trial) {
  for (const name of readdirSync(trial.source)) rmSync(path.join(trial.source, name), { recursive: true })
  await look(trial, 'source removed', await tell(trial, ['restart']))
}

/** @returns what a person is told */
async function tell ({ deck, home }: Trial, words: string[]): Promise<{ code: number, text: string }> {
  const { code, stdout, stderr } = await runCliHere([...words, '--wait', '--data-dir', deck.folder], {
    cwd: existsSync(home) ? home : '/'
  })
  const lines = `${stderr}${stdout}`.trim().split('\n')
  return { code,
    text: lines.findLast((line) => CLAIM.test(line) || line.startsWith('clusterdeck: ')) ?? lines.at(-1) ?? '' }
}

/** Asks all workers, and holds their answers against what they are called. */
async function look ({ program, port, deck, row, layout, versions, current }: Trial, step: string,
  said?: { code: number, text: string })
{
  const page = typeof program.asks?.path === 'string' ? program.asks.path : '/'
  const answers = await askAll(port, page)
  const { workers } = await deck.status()
  const called = workers.filter(({ state }) => state === 'ready')
  for (const { pid, release, drifted } of called) {
    const version = answers.get(Number(pid))
    if (version !== undefined && version !== versions[release] && !drifted)
      row.problems.push(`${step}: a worker called ${release} (${versions[release]}) answers ${version}`)
  }
  // A page does not work without its scripts and styles.
  if (layout !== 'in-place') {
    for (const asset of await missingAssets(port, page)) row.problems.push(`${step}: the page needs ${asset}`)
  }
  const claimed = CLAIM.exec(said?.text ?? '')?.[0]
  const others = [...new Set(answers.values())].filter((version) => version !== current)
  if (['succeeded', 'rolled-back'].includes(String(claimed)) && others.length > 0)
    row.problems.push(`${step}: ${claimed}, but ${others.join()} is answered`)
  row.steps[step] = `${[...new Set(answers.values())].join()}${
    said ? ` (${said.code}${claimed ? `, ${claimed}` : ''})` : ''
  }`
}

/** @returns the version by the pid of who answers; or what else was answered */
async function askAll (port: number, page: string): Promise<Map<number, string>> {
  const answers = new Map()
  for (let n = 0; n < ASKED; n++) {
    const text = await ask(port, page)
    const [, version] = /hello from \S+ ([a-z]+)/.exec(text) ?? []
    answers.set(Number(/\bpid (?:<!--.*?-->)?(\d+)/.exec(text)?.[1] ?? -n), version ?? text.slice(0, 40))
  }
  return answers
}

/** @returns the scripts and styles of the page that are not there, and what is answered instead */
async function missingAssets (port: number, page: string): Promise<string[]> {
  const text = await ask(port, page)
  const paths = [...text.matchAll(/\b(?:src|href)="(\/[^"/][^"]*\.(?:js|css)[^"]*)"/g)].map(([, asset]) => asset)
  const answers = await Promise.all(paths.map(async (asset) => ({ asset, answer: await ask(port, asset) })))
  return answers.filter(({ answer }) => /^(?:status|no answer)/.test(answer)).map(({ asset, answer }) =>
    `${asset}: ${answer}`
  )
}

async function ask (port: number, page: string): Promise<string> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}${page}`, { headers: { connection: 'close' } })
    return response.ok ? await response.text() : `status ${response.status}`
  } catch (error) {
    return `no answer: ${errorCode((error as Error).cause) ?? errorText(error)}`
  }
}
