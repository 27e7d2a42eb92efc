import { renameSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { DeckError, errorText } from '../errors.ts'
import { whyPathDistrusted } from '../system/trust.ts'
import { formatTable } from '../cli/output.ts'
import { misuse } from '../cli/usage.ts'
import type { Terminal } from '../cli/program.ts'
import type { Conversion, ForeignApp, Item } from './convert.ts'

type ImportOptions = { env?: string, output?: string, force?: true, print?: true, pm2?: true }

const DEFAULT_OUTPUT = 'clusterdeck.config.mjs'
const OWNER_ONLY = 0o600
const MAX_NOTE = 90

export async function importCommand (file: string | undefined, options: ImportOptions, terminal: Terminal) {
  const written = await importEcosystem(file, options, terminal)
  if (written) terminal.stdout.write(`${written.output} is written. Check it, then start ${written.next}\n`)
}

type Reported =
  & Omit<Terminal, 'stdout'>
  & { stdout: Pick<Terminal['stderr'], 'write'> }

/**
 * Writes what a running PM2 runs as a config file, whose comments say what became of each key. Returns the file.
 * @throws {DeckError} usage, not-possible
 */
export async function writePm2Config (terminal: Terminal): Promise<string> {
  const nowhere = { write: () => true }
  const written = await importEcosystem(undefined, { pm2: true }, { ...terminal, stdout: nowhere })
  terminal.stderr.write(`${written?.output} is written: it says how each app of PM2 is run here\n`)
  return String(written?.output)
}

/**
 * Returns `next`: the command that starts it; null: it was printed.
 * @throws {DeckError} usage, invalid-config, not-possible
 */
async function importEcosystem (file: string | undefined, options: ImportOptions,
  terminal: Reported): Promise<{ output: string, next: string } | null>
{
  const output = checkedOutput(options, terminal.cwd)
  const [{ convertEcosystem, isAlone }, { configText, foreignText }, { lookUpScript }] = await Promise.all([
    import('./convert.ts'),
    import('./config-text.ts'),
    import('./look.ts')
  ])
  const { ecosystem, folder, source, remarks, mode } = options.pm2
    ? await ofPm2(file, options, terminal)
    : await ofFile(file, terminal)
  const look = (script: string, cwd: string) => lookUpScript(script, cwd, terminal.env.PATH)
  const conversion = convertEcosystem(ecosystem, { folder, target: path.dirname(output), look, envName: options.env })
  const text = configText(conversion, { source, remarks })
  const { stdout, stderr } = terminal
  const report = options.print ? stderr : stdout
  report.write(reportText(conversion, remarks, foreignText))
  if (conversion.apps.length === 0) {
    const received = `${conversion.foreign.length} without a program; nothing is written`
    throw new DeckError('not-possible', `import: expected an app with a program, received ${received}`)
  }
  if (options.print) {
    stdout.write(text)
    return null
  }
  writeConfigFile(output, text, { mode, isForced: options.force === true })
  return { output, next: nextCommand(conversion, { isAlone: isAlone(conversion), output, cwd: terminal.cwd }) }
}

async function ofFile (named: string | undefined, { env, cwd }: Reported) {
  const { findEcosystem, readEcosystem } = await import('./ecosystem-file.ts')
  const file = findEcosystem(named, cwd)
  const { value, dropped } = await readEcosystem(file, { env })
  const remarks = dropped.map((each) => `Left out: ${each}.`)
  return { ecosystem: value, folder: path.dirname(file), source: path.basename(file), remarks,
    mode: statSync(file).mode & 0o666 }
}

async function ofPm2 (file: string | undefined, { env: envName }: ImportOptions, { env, cwd }: Reported) {
  if (file !== undefined) throw misuse('--pm2', 'without a file', file)
  if (envName !== undefined)
    throw new DeckError('usage', '--env: expected without --pm2, whose processes have their variables already')
  const [{ findPm2 }, { appsOfList }] = await Promise.all([import('./running-pm2.ts'), import('./process-list.ts')])
  const { apps, remarks } = appsOfList(await (await findPm2({ env, cwd })).list(), env)
  if (apps.length === 0) throw new DeckError('not-possible', '--pm2: expected at least one process, received none')
  // The variables of processes may be secret.
  return { ecosystem: apps, folder: cwd, source: 'pm2 jlist', remarks, mode: OWNER_ONLY }
}

function checkedOutput ({ output = DEFAULT_OUTPUT, print, force }: ImportOptions, cwd: string) {
  const file = path.resolve(cwd, output)
  if (path.extname(file) !== '.mjs') throw misuse('--output', 'a file that ends with .mjs', output)
  if (!print && !force && statSync(file, { throwIfNoEntry: false }))
    throw misuse('--output', 'a file that does not exist yet, or --force', file)
  // Who can change that folder could put another file, or a link, in the place of what is written.
  const reason = print || output !== DEFAULT_OUTPUT ? null : whyPathDistrusted(path.dirname(file))
  if (reason !== null)
    throw new DeckError('usage',
      `--output: expected a working folder that only root and this user can write, but ${reason}; correct that, or name a file by --output`)
  return file
}

function writeConfigFile (file: string, text: string, { mode, isForced }: { mode: number, isForced: boolean }) {
  const place = isForced ? `${file}.${process.pid}.new` : file
  try {
    writeFileSync(place, text, { mode, flag: 'wx' })
    if (isForced) renameSync(place, file)
  } catch (error) {
    throw misuse('--output', 'a file that can be written', `${file}: ${errorText(error)}`, { cause: error })
  }
}

function reportText ({ apps, foreign, items }: Conversion, remarks: string[],
  foreignText: (app: ForeignApp) => string)
{
  /** What is explained already. */
  const said: Set<string> = new Set()
  const tables = [...apps, ...(items.length > 0 ? [{ name: 'outside of the apps', items }] : [])]
  return [
    ...tables.map(({ name, items }) =>
      `${name}\n${formatTable(['PM2', 'IS', 'CLUSTERDECK'], items.map((item) => rowOf(item, said)))}\n`
    ),
    ...foreign.map((app) => `${foreignText(app)}\n`),
    ...(remarks.length > 0 ? [remarks.map((remark) => `${remark}\n`).join('')] : [])
  ].map((part) => `${part}\n`).join('')
}

function rowOf ({ key, fate, to, note }: Item, said: Set<string>) {
  const explanation = note === null ? '' : said.has(`${key}: ${note}`) ? 'see above' : note
  said.add(`${key}: ${note}`)
  const text = [to.join(', '), explanation].filter(Boolean).join(': ')
  return [key, fate, text.length > MAX_NOTE ? `${text.slice(0, MAX_NOTE - 1)}…` : text]
}

function nextCommand ({ apps }: Conversion,
  { isAlone, output, cwd }: { isAlone: boolean, output: string, cwd: string })
{
  const config = path.relative(cwd, output)
  return `${apps.length === 1 ? 'it' : `all ${apps.length} apps`} by: clusterdeck ${isAlone ? 'start' : 'up --detach'}${
    config === DEFAULT_OUTPUT ? '' : ` --config ${config}`
  }`
}
