import { spawn } from 'node:child_process'
import { existsSync, realpathSync } from 'node:fs'
import path from 'node:path'
import { attempt } from '../errors.ts'
import type { Differences } from './file-differences.ts'

const PATIENCE_MS = 5000
const MAX_ANSWER_CHARS = 64_000
const MAX_FIELD_CHARS = 200
const COMMIT = /^[0-9a-f]{40,64}$/
// The configuration of a repository can name programs that git runs, also to fetch what a partial clone lacks. These
// options keep it from running any.
const HARMLESS = ['--no-optional-locks', '-c', 'protocol.allow=never', '-c', 'core.fsmonitor=false', '-c',
  'core.hooksPath=/dev/null']
// Other variables could point git to another repository, or change its output.
const PASSED_ON = ['PATH', 'HOME', 'XDG_CONFIG_HOME']

/** Where a commit is looked for, an answer may take longer. */
const LONG_PATIENCE_MS = 30_000
/** More than the description of any package. */
const MAX_FILE_CHARS = 4 * 1024 * 1024
/** More than the names of 300,000 files. */
const MAX_LIST_CHARS = 32 * 1024 * 1024
/** Lists all files of a commit. */
export const LIST_TREE = Object.freeze(['ls-tree', '-r', '-l', '-z', '--full-tree'])

/** `env`: where git is, and whose configuration counts */
type GitOptions = { program?: string, patienceMs?: number, maxChars?: number, env?: Record<string, string | undefined> }

/** The pids of running git processes: they must not be reaped as if they were left over. */
const running: Set<number | undefined> = new Set()

export const isGit = (pid: number) => running.has(pid)

/** What is read already, by its `.git`: see `readGitAhead`. */
const ahead: Map<string, Promise<Checkout | null>> = new Map()

/**
 * Begins to read what is checked out around a file, for the next `readGit` in the same working tree: a master that
 * starts has other things to do until it needs to know.
 * @returns forgets it: what is asked later is to be read anew
 */
export function readGitAhead (file: string, options?: GitOptions): () => void {
  // ENOENT: what needs the file says so.
  const place = attempt(() => gitPlaceOf(path.dirname(realpathSync(file))))
  if (place === null) return () => {}
  const checkout = readCheckout(path.dirname(place), options)
  ahead.set(place, checkout)
  return () => {
    if (ahead.get(place) === checkout) ahead.delete(place)
  }
}

/**
 * `branch`: null if HEAD is detached; `isDirty`: whether a tracked file was changed, null if that took too long;
 * `subject`: the first line of its message
 */
type Checkout = { commit: string, branch: string | null, isDirty: boolean | null, author: string | null,
  subject: string | null }
/**
 * Reads what is checked out in a folder. Never fails: it returns null without git, a checkout or a commit, or if git
 * distrusts the owner of the repository (`safe.directory`).
 */
export async function readGit (folder: string, options?: GitOptions): Promise<Checkout | null> {
  // Most starts wait for this, and three processes for nothing would take as long as many an app needs to boot.
  const place = gitPlaceOf(folder)
  if (place === null) return null
  const known = ahead.get(place)
  ahead.delete(place)
  return await (known ?? readCheckout(folder, options))
}

/** `folder`: in a working tree */
async function readCheckout (folder: string, options?: GitOptions): Promise<Checkout | null> {
  const ask = gitWithin(folder, options)
  const [head, newest, changes] = await Promise.all([ask(['rev-parse', 'HEAD', '--abbrev-ref', 'HEAD']),
    readLog(ask, ['--no-walk']), ask(['status', '--porcelain', '--untracked-files=no'], { isOneByteEnough: true })])
  const [commit = '', branch = ''] = head.code === 0 ? head.text.split('\n') : []
  if (!COMMIT.test(commit)) return null
  // Another commit may have been checked out in between.
  const [about] = (newest?.[0]?.commit === commit ? newest : await readLog(ask, ['--no-walk', commit])) ?? []
  const isDirty = changes.text !== '' ? true : changes.code === 0 ? false : null
  const isDetached = branch === 'HEAD' || branch === ''
  const { author = null, subject = null } = about ?? {}
  return { commit, branch: isDetached ? null : branch.slice(0, MAX_FIELD_CHARS), isDirty, author, subject }
}

/**
 * Finds the repository that a folder belongs to. Never fails. Returns `prefix`: the way of the folder from the top of
 * its working tree, such as `apps/web/`; null: there is none that git trusts, or no git.
 */
export async function findRepository (folder: string,
  options?: GitOptions): Promise<{ gitDir: string, prefix: string } | null>
{
  const { code, text } = await gitWithin(folder, { patienceMs: LONG_PATIENCE_MS, ...options })(['rev-parse',
    '--absolute-git-dir', '--show-prefix'])
  const [gitDir = '', prefix = ''] = text.split('\n')
  return code === 0 && path.isAbsolute(gitDir) ? { gitDir, prefix } : null
}

/** `branch`: of several, the one that was named */
export type Found = { commit: string, branch: string | null, author: string, subject: string }

/**
 * Finds the commit that a name means in a repository. `ref`: a branch, a tag, or (part of) a commit's id; never begins
 * with a dash.
 */
export async function findCommit (gitDir: string, ref: string, options?: GitOptions): Promise<Found | null> {
  const ask = gitWithin(gitDir, { patienceMs: LONG_PATIENCE_MS, ...options })
  const { text } = await ask(['rev-parse', '--verify', '--quiet', `${ref}^{commit}`])
  const commit = text.trim()
  if (!COMMIT.test(commit)) return null
  const [named, branches, log] = await Promise.all([
    ask(['rev-parse', '--symbolic-full-name', '--verify', '--quiet', ref]),
    ask(['for-each-ref', `--points-at=${commit}`, '--format=%(refname)', 'refs/heads', 'refs/pushed']),
    readLog(ask, ['--no-walk', commit])
  ])
  const branch = [named, branches].map(({ text }) => /^refs\/(?:heads|remotes|pushed)\/(.+)$/m.exec(text)?.[1]).find((
    name
  ) => name !== undefined)
  const { author = '', subject = '' } = log?.[0] ?? {}
  return { commit, branch: branch?.slice(0, MAX_FIELD_CHARS) ?? null, author, subject }
}

/** `at`: when the commit, or the tag, was made */
export type Ref = { name: string, kind: 'branch' | 'tag', commit: string, at: string, subject: string }

/** Lists the branches and tags of a repository, those with the newest commits first. Never fails. */
export async function readRefs (gitDir: string, { limit }: { limit: number }, options?: GitOptions): Promise<Ref[]> {
  // A tag with a message is an object of its own, which points to its commit.
  const format = ['refname', 'objectname', '*objectname', 'creatordate:iso-strict', 'contents:subject',
    '*contents:subject'].map((field) => `%(${field})`).join('%1f')
  const { text } = await gitWithin(gitDir, options)(['for-each-ref', '--sort=-creatordate', `--count=${limit}`,
    `--format=${format}`, 'refs/heads', 'refs/tags'])
  return text.split('\n').map((line) => line.split('\x1f')).flatMap(
    ([full, object, pointedTo, at, subject, subjectPointedTo]) => {
      const [, kind, name] = /^refs\/(head|tag)s\/(.+)$/.exec(full) ?? []
      const commit = pointedTo || object
      return name !== undefined && name.length <= MAX_FIELD_CHARS && COMMIT.test(commit)
        ? [{ name, kind: kind === 'tag' ? 'tag' : 'branch', commit, at,
          subject: (subjectPointedTo || subject).slice(0, MAX_FIELD_CHARS) }]
        : []
    }
  )
}

/** Reads from a commit, without a working tree. Never fails. */
export function readCommit (gitDir: string, commit: string, options?: GitOptions) {
  const ask = gitWithin(gitDir, { patienceMs: LONG_PATIENCE_MS, maxChars: MAX_FILE_CHARS, ...options })
  return {
    /** `folder`: from the top, ends with a slash unless it is the top. Returns what is in it. */
    async names (folder: string): Promise<string[]> {
      const { code, text } = await ask(['ls-tree', '--name-only', `${commit}:${folder}`])
      return code === 0 ? text.split('\n').filter(Boolean) : []
    },

    /** `file`: from the top. Returns null: it is not there. */
    async file (file: string): Promise<string | null> {
      const { code, text } = await ask(['cat-file', 'blob', `${commit}:${file}`])
      return code === 0 ? text : null
    },

    /** Null: too many, or some are not there */
    async files (): Promise<TreeFile[] | null> {
      const text = await list([...LIST_TREE, commit])
      return text === null ? null : parseTree(text)
    },

    /** `from`: a commit. Returns from that to this one; null: the repository does not have it, or too many. */
    async since (from: string): Promise<Differences | null> {
      const text = COMMIT.test(from)
        ? await list(['diff-tree', '-r', '-z', '--name-status', '--no-renames', from, commit])
        : null
      return text === null ? null : parseChanges(text)
    }
  }

  /** Null: not all of it */
  async function list (words: string[]): Promise<string | null> {
    const { code, text } = await gitWithin(gitDir, { patienceMs: LONG_PATIENCE_MS, ...options,
      maxChars: MAX_LIST_CHARS })(words)
    return code === 0 && text.length < MAX_LIST_CHARS ? text : null
  }
}

export type TreeFile = { mode: string, bytes: number, name: string }

/** `text`: of LIST_TREE: `<mode> <type> <object> <size>\t<name>\0`… */
export function parseTree (text: string): TreeFile[] {
  return text.split('\0').filter(Boolean).map((line) => {
    const tab = line.indexOf('\t')
    const [mode, , , bytes] = line.slice(0, tab).split(/ +/)
    return { mode, bytes: Number(bytes), name: line.slice(tab + 1) }
  })
}

/** `text`: `A\0<name>\0`…, or another letter */
function parseChanges (text: string) {
  const parts = text.split('\0')
  const named = (isWanted: (letter: string) => boolean) =>
    parts.filter((_, at) => at % 2 === 1 && isWanted(parts[at - 1]))
  return { added: named((letter) => letter === 'A'), changed: named((letter) => !['A', 'D'].includes(letter)),
    removed: named((letter) => letter === 'D') }
}

/** @returns the `.git` of its working tree; null: it is in none */
function gitPlaceOf (folder: string): string | null {
  const place = path.join(folder, '.git')
  if (existsSync(place)) return place
  const above = path.dirname(folder)
  return above === folder ? null : gitPlaceOf(above)
}

/**
 * Tells which files came with the code. Never fails. `names`: of files and folders in it. Returns the tracked ones, and
 * what is tracked in the folders, by names from there; none without git or a checkout.
 */
export async function readTracked (folder: string, names: readonly string[], options?: GitOptions): Promise<string[]> {
  if (names.length === 0 || gitPlaceOf(folder) === null) return []
  const { code, text } = await gitWithin(folder, options)(['--literal-pathspecs', 'ls-files', '-z', '--', ...names])
  return code === 0 ? text.split('\0').filter(Boolean) : []
}

/**
 * Lists the commits that are added and removed from one commit to another, the newest first. Never fails. Returns null:
 * the repository does not have both.
 */
export async function readCommits (folder: string, { from, to, limit }: { from: string, to: string, limit: number },
  options?: GitOptions): Promise<{ added: Commits, removed: Commits } | null>
{
  if (!COMMIT.test(from) || !COMMIT.test(to)) return null
  const ask = gitWithin(folder, options)
  const [added, removed] = await Promise.all(
    [[from, to], [to, from]].map(([without, of]) => readLog(ask, [`--max-count=${limit + 1}`, of, `^${without}`]))
  )
  return added && removed && { added: clipCommits(added, limit), removed: clipCommits(removed, limit) }
}

function clipCommits (commits: Commit[], limit: number): Commits {
  return { items: commits.slice(0, limit), hasMore: commits.length > limit }
}

type Commits = { items: Commit[], hasMore: boolean }
type Commit = { commit: string, at: string, author: string, subject: string }
async function readLog (ask: ReturnType<typeof gitWithin>, words: string[]): Promise<Commit[] | null> {
  const { code, text } = await ask(['log', '--no-show-signature', '--format=%H%x1f%aI%x1f%an%x1f%s', ...words, '--'])
  if (code !== 0) return null
  return text.split('\n').filter(Boolean).map((line) => line.split('\x1f')).map((
    [commit, at = '', author = '', ...subject]
  ) => ({ commit, at, author: author.slice(0, MAX_FIELD_CHARS), subject: subject.join(' ').slice(0, MAX_FIELD_CHARS) }))
}

/** `options`: for all that is asked together */
function gitWithin (folder: string,
  { program = 'git', patienceMs = PATIENCE_MS, maxChars = MAX_ANSWER_CHARS, env = process.env }: GitOptions = {})
{
  const deadline = performance.now() + patienceMs

  return function ask (words: string[],
    { isOneByteEnough = false }: { isOneByteEnough?: boolean } = {}): Promise<{ code: number | null, text: string }>
  {
    return new Promise((resolve) => {
      const passedOn = Object.fromEntries(PASSED_ON.map((name) => [name, env[name]]))
      const child = spawn(program, [...HARMLESS, '-C', folder, ...words], { stdio: ['ignore', 'pipe', 'ignore'],
        cwd: '/', env: { ...passedOn, LC_ALL: 'C', GIT_TERMINAL_PROMPT: '0' } })
      const timer = setTimeout(() => endGit(null), deadline - performance.now())
      let text = ''
      running.add(child.pid)
      child.once('exit', () => running.delete(child.pid))
      child.once('error', () => endGit(null))
      child.once('close', endGit)
      child.stdout?.setEncoding('utf8').on('data', (part) => {
        text = (text + part).slice(0, maxChars)
        if (isOneByteEnough) endGit(null)
      })

      function endGit (code: number | null) {
        clearTimeout(timer)
        child.stdout?.destroy()
        child.kill('SIGKILL')
        resolve({ code, text })
      }
    })
  }
}
