import { mkdirSync } from 'node:fs'
import { copyFile, mkdir, open, rename, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { formatNames } from '../../public/format.ts'
import { DeckError, errorCode } from '../errors.ts'
import { LIST_TREE, parseTree, type Found, type TreeFile } from './git.ts'

/** as of jobs/run-steps.ts */
export type Exec = (
  step: { name: string, command: readonly string[], cwd: string, env: Record<string, string | undefined>,
    isQuiet?: boolean }
) => Promise<string>

/** Nothing that a repository, or somebody with an address, could have run: `ext::` is a command. */
const PROTOCOLS = 'https:http:ssh:git:file'
/**
 * What a repository could have its own programs run by, or could leave out of an export. What packs it has to do at
 * once, as its group is ended with it.
 */
const SETTINGS = ['core.fsmonitor=false', 'core.hooksPath=/dev/null', 'core.sparseCheckout=false',
  'core.splitIndex=false', 'submodule.recurse=false', 'fetch.recurseSubmodules=false', 'gc.autoDetach=false',
  'maintenance.autoDetach=false'].flatMap((setting) => ['-c', setting])
/**
 * Those by which git is told its keys and its user's configuration; all others are of the repository in whose hook
 * somebody may be.
 */
const KEPT =
  /^GIT_(SSH|SSH_COMMAND|SSH_VARIANT|ASKPASS|PROXY_COMMAND|SSL_.*|CONFIG_GLOBAL|CONFIG_SYSTEM|CONFIG_NOSYSTEM|EXEC_PATH|TRACE.*)$/
const SUBMODULE = '160000'
const LINK = '120000'
/** A pointer is smaller, by the specification of Git LFS. */
const MAX_POINTER_BYTES = 1024
const POINTER = /^version https:\/\/git-lfs\.github\.com\/spec\/v1\n/
const READ_AT_ONCE = 64

/** @returns without what git tells its hooks of their repository */
export function withoutGitVariables (env: Record<string, string | undefined>): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('GIT_') || KEPT.test(name)))
}

/** @returns for git */
function gitEnvironment (env: Record<string, string | undefined>): Record<string, string | undefined> {
  return { ...withoutGitVariables(env), GIT_ALLOW_PROTOCOL: PROTOCOLS, GIT_TERMINAL_PROMPT: '0' }
}

/**
 * Fetches all branches and tags into a bare repository of our own.
 * @throws {DeckError} git-failed
 */
export async function fetchAll (
  { url, gitDir, env, exec }: { url: string, gitDir: string, env: Record<string, string | undefined>, exec: Exec }
) {
  mkdirSync(gitDir, { recursive: true, mode: 0o700 })
  const git = gitRunner({ gitDir, env, exec })
  await git('git init', ['init', '--bare', '--quiet'], { isQuiet: true })
  await git('git fetch', ['fetch', '--prune', '--force', '--no-auto-gc', '--', url, '+refs/heads/*:refs/heads/*',
    '+refs/tags/*:refs/tags/*'])
}

/**
 * Lets git write the files of a commit into a folder, with its own conversions, and makes a repository of that.
 * `to`: is there, and is empty; `index`: a file of ours. Returns the names of all files.
 * @throws {DeckError} git-failed
 */
export async function exportCommit (
  { gitDir, found, to, index, env, exec }: { gitDir: string, found: Found, to: string, index: string,
    env: Record<string, string | undefined>, exec: Exec }
): Promise<string[]> {
  const { commit } = found
  const git = gitRunner({ gitDir, env: { ...env, GIT_INDEX_FILE: index }, exec })
  const files = parseTree(await git('git ls-tree', [...LIST_TREE, commit], { isQuiet: true }))
  refuseSubmodules(files)
  await git('git read-tree', [`--work-tree=${to}`, 'read-tree', '--reset', '-u', commit], { isQuiet: true })
  const pointers = await findPointers(to, files)
  if (pointers.length > 0) {
    throw new DeckError('git-failed',
      `expected the files themselves, received pointers of Git LFS: ${
        formatNames(pointers)
      }. Install git-lfs for the user of the app ("git lfs install"), and fetch them ("git lfs fetch")`)
  }
  const about = await git('git rev-parse', ['rev-parse', '--git-path', 'objects', '--git-path', 'shallow', '--git-path',
    'shallow.pushed'], { isQuiet: true })
  const [objects, ...shallow] = about.split('\n').filter(Boolean).map((file) => path.resolve(gitDir, file))
  const tags = await git('git for-each-ref', ['for-each-ref', '--format=%(objectname) %(refname)', 'refs/tags'], {
    isQuiet: true
  })
  await makeRepository(path.join(to, '.git'), { found, objects, shallow, tags, index })
  return files.map(({ name }) => name)
}

/**
 * A release is below the folder of the app, so git would find the app's repository from there: a build, a hook or a job
 * would be told another commit, and would change that repository. So the release has one of its own, which borrows the
 * objects.
 * @param from `shallow`: files that say where the history ends, the last that is there counts; `tags`: as in
 * packed-refs
 */
async function makeRepository (own: string,
  { found: { commit, branch }, objects, shallow, tags, index }: { found: Found, objects: string, shallow: string[],
    tags: string, index: string })
{
  const ref = branch === null ? null : `refs/heads/${branch}`
  const extensions = commit.length === 40 ? '' : '[extensions]\n\tobjectFormat = sha256\n'
  for (const name of ['objects/info', 'refs']) await mkdir(path.join(own, name), { recursive: true, mode: 0o700 })
  await Promise.all(
    Object.entries({
      config: `[core]\n\trepositoryformatversion = ${extensions === '' ? 0 : 1}\n\tbare = false\n${extensions}`,
      'objects/info/alternates': `${objects}\n`,
      'packed-refs': `${ref === null ? '' : `${commit} ${ref}\n`}${tags}`,
      HEAD: `${ref === null ? commit : `ref: ${ref}`}\n`
    }).map(([name, text]) => writeFile(path.join(own, name), text))
  )
  for (const file of shallow) {
    await copyFile(file, path.join(own, 'shallow')).catch((error) => {
      // ENOENT: the repository has all of its history.
      if (errorCode(error) !== 'ENOENT') throw error
    })
  }
  await rename(index, path.join(own, 'index'))
}

function gitRunner ({ gitDir, env, exec }: { gitDir: string, env: Record<string, string | undefined>, exec: Exec }) {
  const { GIT_INDEX_FILE, ...others } = env
  return async (name: string, words: string[], { isQuiet = false } = {}) => {
    try {
      return await exec({ name, command: ['git', ...SETTINGS, `--git-dir=${gitDir}`, ...words], cwd: gitDir,
        env: { ...gitEnvironment(others), ...(GIT_INDEX_FILE !== undefined && { GIT_INDEX_FILE }) }, isQuiet })
    } catch (error) {
      if (error instanceof DeckError) throw new DeckError('git-failed', error.message, { cause: error })
      throw error
    }
  }
}

/** @throws {DeckError} git-failed */
export function refuseSubmodules (files: TreeFile[]) {
  const submodules = files.filter(({ mode }) => mode === SUBMODULE).map(({ name }) => name)
  if (submodules.length === 0) return
  throw new DeckError('git-failed',
    `the commit has submodules, which are not exported: expected all files in one repository, received ${
      formatNames(submodules)
    }`)
}

async function findPointers (top: string, files: TreeFile[]) {
  const small = files.filter(({ mode, bytes }) => mode !== LINK && bytes < MAX_POINTER_BYTES)
  const found = []
  for (let at = 0; at < small.length; at += READ_AT_ONCE) {
    const part = small.slice(at, at + READ_AT_ONCE)
    const isPointer = await Promise.all(part.map(({ name }) => beginsAsPointer(path.join(top, name))))
    found.push(...part.filter((_, index) => isPointer[index]).map(({ name }) => name))
  }
  return found
}

async function beginsAsPointer (file: string) {
  const handle = await open(file).catch(() => null)
  if (handle === null) return false
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(64), 0, 64, 0)
    return POINTER.test(buffer.toString('latin1', 0, bytesRead))
  } finally {
    await handle.close()
  }
}
