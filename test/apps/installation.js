import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'

const SOURCES = path.join(import.meta.dirname, 'programs')
const INSTALLED = path.join(import.meta.dirname, '.installed')
const PATIENCE_MS = 10 * 60_000

/**
 * Each program has a folder of its own, as a user's project has: no program gets another one's versions, and one that
 * cannot be installed is alone in that. What has not changed since is left as it is.
 * @param {import('./programs.js').Program} program
 * @returns {Promise<{ folder: string, version: string }>} the version of its first package, or of node
 * @throws {Error} what npm or the build said
 */
export async function install (program) {
  const folder = path.join(INSTALLED, program.name)
  const stamp = path.join(folder, '.stamp')
  const wanted = digest(program)
  if (read(stamp) !== wanted) {
    rmSync(stamp, { force: true })
    await fill(folder, program)
    writeFileSync(stamp, wanted)
  }
  return { folder, version: versionOf(program, folder) }
}

/** @param {import('./programs.js').Program} program */
function digest (program) {
  const { packages, overrides, scripts, type, manager, compiles, build = [] } = program
  const hash = createHash('sha256').update(JSON.stringify([packages, overrides, scripts, type, manager, compiles, build, process.versions.modules]))
  for (const source of sourcesOf(program)) {
    for (const file of listFiles(source.from)) hash.update(file).update(readFileSync(file))
  }
  return hash.digest('hex')
}

/** @param {import('./programs.js').Program} program @returns {{ from: string, to: string }[]} `to`: below its folder */
function sourcesOf ({ project, entry, files = project || !entry || entry.startsWith('node_modules') ? [] : [entry] }) {
  return [
    ...(project ? [{ from: path.join(SOURCES, project), to: '.' }] : []),
    ...files.map((file) => ({ from: path.join(SOURCES, file), to: path.basename(file) }))
  ]
}

/** @param {string} where a file or a folder @returns {string[]} */
function listFiles (where) {
  return statSync(where).isDirectory() ? readdirSync(where).sort().flatMap((name) => listFiles(path.join(where, name))) : [where]
}

/** @param {string} folder @param {import('./programs.js').Program} program */
async function fill (folder, program) {
  const { name, packages, overrides, scripts, type, manager, compiles, build = [] } = program
  mkdirSync(folder, { recursive: true })
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ name: `gallery-${name}`, private: true, type, scripts, dependencies: packages, overrides }, null, 2))
  for (const { from, to } of sourcesOf(program)) cpSync(from, path.join(folder, to), { recursive: true })
  if (manager) await run('npx', ['--yes', '--package', manager[0], manager[1], 'install'], folder, 'not installed')
  if (Object.keys(packages).length > 0) await run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'], folder, 'not installed')
  if (compiles) await run('npm', ['rebuild', '--build-from-source', ...compiles], folder, 'not compiled')
  for (const [command, ...args] of build) await run(path.join(folder, 'node_modules/.bin', command), args, folder, 'not built')
}

/** @param {string} command @param {string[]} args @param {string} cwd @param {string} failure */
async function run (command, args, cwd, failure) {
  try {
    await promisify(execFile)(command, args, { cwd, timeout: PATIENCE_MS, maxBuffer: 64 * 1024 * 1024 })
  } catch (/** @type {any} */ error) {
    throw new Error(`${failure}: ${lastWords(`${error.stdout ?? ''}${error.stderr ?? ''}`) || error.message}`, { cause: error })
  }
}

/** @param {string} output */
function lastWords (output) {
  return output.split('\n').map((line) => line.trim()).filter((line) => line && !/debug-\d+\.log|A complete log/.test(line)).slice(-3).join(' ').slice(-300)
}

/** @param {import('./programs.js').Program} program @param {string} folder */
function versionOf ({ packages }, folder) {
  const [name] = Object.keys(packages)
  return name ? JSON.parse(readFileSync(path.join(folder, 'node_modules', name, 'package.json'), 'utf8')).version : `node ${process.versions.node}`
}

/** @param {string} file */
function read (file) {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // ENOENT: not installed yet.
    return null
  }
}
