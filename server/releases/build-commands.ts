import { createHash } from 'node:crypto'
import { DeckError } from '../errors.ts'
import { parsePackage } from './resolve.ts'
import type { readCommit } from './git.ts'
import type { PackageJson } from '../launch/packages.ts'

/** How the code of a commit is installed and built. */
export type Build = {
  /** for people */
  text: string,
  /**
   * `folder`: where, from the top; `key`: what decides
   * which packages it installs; null: more than that
   */
  install: { command: readonly string[], folder: string, key: string | null } | null,
  /** in the package folder */
  command: readonly string[] | null,
  isGuess: boolean,
  /** the lock file of the package manager */
  lock: { name: string, digest: string } | null
}
type BuildHook = { command: readonly string[], timeoutMs: number }
type Manager = { lock: string, install: (about: About) => string[], run: string }
type About = { names: string[], package: PackageJson }

/** They are told apart by their lock files. The likeliest comes first. */
const MANAGERS = Object.freeze(
  [{ lock: 'package-lock.json', install: () => ['npm', 'ci'], run: 'npm' }, { lock: 'npm-shrinkwrap.json',
    install: () => ['npm', 'ci'], run: 'npm' }, { lock: 'pnpm-lock.yaml',
    install: () => ['pnpm', 'install', '--frozen-lockfile'], run: 'pnpm' }, { lock: 'yarn.lock',
    install: (about) => ['yarn', 'install', isNewYarn(about) ? '--immutable' : '--frozen-lockfile'], run: 'yarn' }, {
    lock: 'bun.lock',
    install: () => ['bun', 'install', '--frozen-lockfile'],
    run: 'bun'
  }, { lock: 'bun.lockb', install: () => ['bun', 'install', '--frozen-lockfile'], run: 'bun' }] as readonly Manager[]
)
/** They decide too what is installed. */
const SETTINGS = Object.freeze(['.npmrc', '.pnpmfile.cjs', 'pnpm-workspace.yaml', '.yarnrc', '.yarnrc.yml',
  'bunfig.toml'])
/** What a package of the app itself runs when it is installed may depend on all of its files. */
const INSTALL_SCRIPTS = Object.freeze(['preinstall', 'install', 'postinstall', 'prepare'])
/** Puts hooks into a repository, and nothing into the packages. */
const HARMLESS_SCRIPT = /^(is-ci \|\| )?husky( install)?( \|\| (true|exit 0|:))?$/

/**
 * Says how a commit is built: by the hook, else as its lock file and its package.json suggest.
 * @returns null: there is nothing to do
 * @throws {DeckError} build-unconfirmed: nobody can guess how
 */
export async function buildOf ({ tree, prefix, hook }: {
  tree: Pick<ReturnType<typeof readCommit>, 'names' | 'file'>,
  /** the package folder, from the top: `apps/web/` */
  prefix: string,
  hook: BuildHook | undefined
}): Promise<Build | null> {
  const about = parsePackage(await tree.file(`${prefix}package.json`))
  const found = await findLock(tree, prefix)
  const lock = found && { name: found.folder + found.manager.lock, digest: `sha256:${sha256(found.content)}` }
  if (hook) return { text: 'hooks.build', install: null, command: hook.command, isGuess: false, lock }
  const hasScript = typeof about?.scripts?.build === 'string'
  if (!found) {
    const dependencies = Object.keys({ ...about?.dependencies, ...about?.devDependencies })
    if (dependencies.length > 0 && !(await tree.names(prefix)).includes('node_modules')) {
      throw new DeckError('build-unconfirmed',
        `hooks.build: expected a command such as ["npm", "install"], as ${prefix}package.json has dependencies and there is no lock file, received none`)
    }
    return hasScript
      ? { text: 'npm run build', install: null, command: ['npm', 'run', 'build'], isGuess: true, lock }
      : null
  }
  const { manager, folder, names, content } = found
  const install = manager.install({ names, package: parsePackage(await tree.file(`${folder}package.json`)) ?? {} })
  const settings = await Promise.all(
    SETTINGS.filter((name) => names.includes(name)).map(async (name) => [name, await tree.file(folder + name)])
  )
  const command = hasScript ? [manager.run, 'run', 'build'] : null
  return { text: [install, ...(command ? [command] : [])].map((words) => words.join(' ')).join(', then '),
    install: { command: install, folder,
      key: hasFolders(manager, content) ? null : sha256(JSON.stringify([content, settings, install])) }, command,
    isGuess: true, lock }
}

/** `text`: of a package.json of the app. Returns whether its packages depend on more than the lock file. */
export function hasInstallScript (text: string): boolean {
  const scripts = parsePackage(text)?.scripts ?? {}
  return INSTALL_SCRIPTS.some((name) => {
    const script = scripts[name]
    return typeof script === 'string' && !HARMLESS_SCRIPT.test(script.trim())
  })
}

/** `prefix`: the nearest lock file, from there to the top */
async function findLock (tree: Pick<ReturnType<typeof readCommit>, 'names' | 'file'>, prefix: string) {
  for (let folder = prefix;; folder = folder.replace(/[^/]+\/$/, '')) {
    const names = await tree.names(folder)
    const manager = MANAGERS.find(({ lock }) => names.includes(lock))
    const content = manager ? await tree.file(folder + manager.lock) : null
    if (manager && content !== null) return { manager, folder, names, content }
    if (folder === '') return null
  }
}

/** Packages that are folders of the app are copied by these, and no digest is kept of what is in them. */
function hasFolders ({ run }: Manager, content: string) {
  return run !== 'npm' && /\bfile:|\bdirectory:/.test(content)
}

function isNewYarn ({ names, package: { packageManager } }: About) {
  return names.includes('.yarnrc.yml') || /^yarn@[2-9]/.test(String(packageManager))
}

function sha256 (text: string) {
  return createHash('sha256').update(text).digest('hex')
}
