import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import type { Program } from './programs.ts'

const SOURCES = path.join(import.meta.dirname, 'programs')
const INSTALLED = path.join(import.meta.dirname, '.installed')
const PATIENCE_MS = 10 * 60_000

/**
 * Each program has a folder of its own, as a user's project has: no program gets another one's versions, and one that
 * cannot be installed is alone in that. What has not changed since is left as it is.
 * @returns the version of its first package, or of node
 * @throws {Error} what npm or the build said
 */
export async function install (program: Program): Promise<{ folder: string, version: string }> {
  const { packages, overrides, scripts, type, manager, compiles, build = [] } = program
  const folder = path.join(INSTALLED, program.name)
  await fillOnce(folder, {
    facts: [packages, overrides, scripts, type, manager, compiles, build, process.versions.modules],
    sources: sourcesOf(program).map(({ from }) => from)
  }, () => fill(folder, program))
  return { folder, version: versionOf(program, folder) }
}

/** Fills a folder, unless that was done with the same facts and sources. */
export async function fillOnce (folder: string, { facts, sources }: { facts: unknown, sources: string[] },
  fill: () => Promise<unknown>)
{
  const hash = createHash('sha256').update(JSON.stringify(facts))
  for (const file of sources.flatMap(listFiles)) hash.update(file).update(readFileSync(file))
  const wanted = hash.digest('hex')
  const stamp = path.join(folder, '.stamp')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return
  rmSync(stamp, { force: true })
  mkdirSync(folder, { recursive: true })
  await fill()
  writeFileSync(stamp, wanted)
}

/** @returns `to`: below its folder */
function sourcesOf (
  { project, entry, files = project || !entry || entry.startsWith('node_modules') ? [] : [entry] }: Program
): { from: string, to: string }[] {
  return [...(project ? [{ from: path.join(SOURCES, project), to: '.' }] : []),
    ...files.map((file) => ({ from: path.join(SOURCES, file), to: path.basename(file) }))]
}

/** `where`: a file or a folder */
function listFiles (where: string): string[] {
  return statSync(where).isDirectory()
    ? readdirSync(where).sort().flatMap((name) => listFiles(path.join(where, name)))
    : [where]
}

async function fill (folder: string, program: Program) {
  const { name, packages, overrides, scripts, type, manager, compiles, build = [] } = program
  writeFileSync(path.join(folder, 'package.json'),
    JSON.stringify({ name: `gallery-${name}`, private: true, type, scripts, dependencies: packages, overrides }, null,
      2))
  for (const { from, to } of sourcesOf(program)) cpSync(from, path.join(folder, to), { recursive: true })
  if (manager) await run('npx', ['--yes', '--package', manager[0], manager[1], 'install'], folder, 'not installed')
  if (Object.keys(packages).length > 0)
    await run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'], folder,
      'not installed')
  if (compiles) await run('npm', ['rebuild', '--build-from-source', ...compiles], folder, 'not compiled')
  for (const [command, ...args] of build)
    await run(path.join(folder, 'node_modules/.bin', command), args, folder, 'not built')
}

async function run (command: string, args: string[], cwd: string, failure: string) {
  try {
    await promisify(execFile)(command, args, { cwd, timeout: PATIENCE_MS, maxBuffer: 64 * 1024 * 1024 })
  } catch (error) {
    const { stdout = '', stderr = '', message } = error as Error & { stdout?: string, stderr?: string }
    throw new Error(`${failure}: ${lastWords(`${stdout}${stderr}`) || message}`, { cause: error })
  }
}

function lastWords (output: string) {
  return output.split('\n').map((line) => line.trim()).filter((line) =>
    line && !/debug-\d+\.log|A complete log/.test(line)
  ).slice(-3).join(' ').slice(-300)
}

function versionOf ({ packages }: Program, folder: string) {
  const [name] = Object.keys(packages)
  return name
    ? JSON.parse(readFileSync(path.join(folder, 'node_modules', name, 'package.json'), 'utf8')).version
    : `node ${process.versions.node}`
}
