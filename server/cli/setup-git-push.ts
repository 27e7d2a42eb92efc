import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, lstatSync, readdirSync, readFileSync, realpathSync, renameSync, rmSync, statSync,
  symlinkSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { DeckError, errorText } from '../errors.ts'
import { shownWords } from '../launch/shell-words.ts'
import { makeFolders } from '../system/make-folders.ts'
import { userId, userName } from '../system/user.ts'
import { checkedForm, misuse } from './usage.ts'
import type { Context } from './commands.ts'

/** In the data folder: where the master looks for what was pushed. */
const PUSHED = 'push.git'
/** In that repository: as of the release of a commit. */
const SHALLOW = 'shallow.pushed'
/** git runs it before it sets a ref, which it refuses where the hook fails, and once it has the objects. */
const HOOK = 'update'
/** What earlier versions have made: it cannot refuse anything. */
const OLD_HOOK = 'post-receive'
const MARK = '# Made by "clusterdeck setup-git-push", which writes it anew.'
/** Builds take their time, and nobody waits for a rollout longer than this. */
const TIMEOUT = '1h'
const CLI = fileURLToPath(new URL('../cli.js', import.meta.url))
const BRANCH = /^(?!-|.*(\.\.|\/\/|@\{|\.lock(\/|$)|\.(\/|$)|\/\.))[^\s~^:?*[\\'\u0000-\u001f\u007f]{1,200}$/

/**
 * Makes a bare repository of which each push to one branch is deployed. Doing it again is harmless.
 * @param wanted a folder; default: one in the data folder
 * @throws {DeckError} usage, not-possible
 */
export async function setupGitPush (context: Context, wanted?: string) {
  const { options: { branch = 'main' }, master: { dataDir }, cwd, answer } = context
  checkedForm('--branch', BRANCH, 'the name of a branch such as main', branch)
  checkOwner(dataDir)
  const place = path.join(dataDir, PUSHED)
  const folder = wanted === undefined ? realOf(place) : path.resolve(cwd, wanted)
  checkFree(folder)
  git(['-c', `init.defaultBranch=${branch}`, 'init', '--bare', '--quiet', folder])
  git([`--git-dir=${folder}`, 'symbolic-ref', 'HEAD', `refs/heads/${branch}`])
  // CI clones have no history.
  git([`--git-dir=${folder}`, 'config', 'receive.shallowUpdate', 'true'])
  chmodSync(folder, 0o700)
  writeHook(path.join(folder, 'hooks'), { branch, dataDir })
  if (realOf(place) !== realpathSync(folder)) pointTo(place, realpathSync(folder))
  const remotes = { here: folder, ssh: `${userName()}@${hostname()}:${folder}` }
  answer({ folder, branch, remotes }, () =>
    `in your clone, on this machine or on another one:
  git remote add production ${shownWords([remotes.here])}
  git remote add production ${shownWords([remotes.ssh])}
then each of these is a deploy:
  git push production ${shownWords([branch])}`)
}

function checkOwner (dataDir: string) {
  const owner = statSync(dataDir, { throwIfNoEntry: false })?.uid
  if (owner !== userId()) throw misuse('setup-git-push', `to be the user of the app (uid ${owner})`, `uid ${userId()}`)
}

/** @throws {DeckError} usage: something else is there */
function checkFree (folder: string) {
  const found = lstatSync(folder, { throwIfNoEntry: false })
  if (!found) {
    makeFolders(folder, 0o700)
    return
  }
  const isOurs = found.isDirectory() &&
    (readdirSync(folder).length === 0 ||
      (existsSync(path.join(folder, 'HEAD')) && existsSync(path.join(folder, 'objects'))))
  if (!isOurs) throw misuse('setup-git-push', 'a new folder, or a bare repository', folder)
  const hook = path.join(folder, 'hooks', HOOK)
  if (existsSync(hook) && !isOurHook(hook))
    throw misuse('setup-git-push', 'a repository without a hook of its own', hook)
}

function isOurHook (file: string) {
  return existsSync(file) && readFileSync(file, 'utf8').includes(MARK)
}

/** @throws {DeckError} not-possible */
function git (words: string[]) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('GIT_')))
  try {
    execFileSync('git', words, { env, cwd: '/', stdio: ['ignore', 'ignore', 'pipe'], encoding: 'utf8' })
  } catch (error) {
    throw new DeckError('not-possible', `git could not make the repository: ${errorText(error)}`, { cause: error })
  }
}

/** git tells its hooks of the repository that they are in by variables, which would mislead git in the deploy. */
function writeHook (folder: string, { branch, dataDir }: { branch: string, dataDir: string }) {
  makeFolders(folder, 0o700)
  const command = shownWords([process.execPath, CLI, 'deploy', '--data-dir', dataDir, '--wait', '--yes', '--timeout',
    TIMEOUT])
  const ref = shownWords([`refs/heads/${branch}`])
  const text = `#!/bin/sh
${MARK}
ref=$1 new=$3 shallow=$GIT_SHALLOW_FILE
unset $(git rev-parse --local-env-vars) GIT_QUARANTINE_PATH GIT_PUSH_OPTION_COUNT
unset CLUSTERDECK_APP CLUSTERDECK_CONFIG CLUSTERDECK_NAME CLUSTERDECK_TIMEOUT CLUSTERDECK_TOKEN CLUSTERDECK_TOKEN_FILE CLUSTERDECK_URL
if [ "$ref" != ${ref} ]; then
  echo "clusterdeck: $ref is not deployed, only "${ref}
  exit 0
fi
# Where the history of a shallow clone ends; git itself keeps that only with the ref.
rm -f ${SHALLOW}
[ -z "$shallow" ] || cp "$shallow" ${SHALLOW}
git --git-dir=. update-ref ${shownWords([`refs/pushed/${branch}`])} "$new"
${command} --git "$new" < /dev/null && exit 0
status=$?
echo "clusterdeck: NOT deployed (exit code $status). The branch stays where it was: push again, or push a better commit"
exit $status
`
  const file = path.join(folder, HOOK)
  writeFileSync(`${file}.new`, text, { mode: 0o700 })
  renameSync(`${file}.new`, file)
  const old = path.join(folder, OLD_HOOK)
  if (isOurHook(old)) rmSync(old)
}

function pointTo (place: string, folder: string) {
  if (lstatSync(place, { throwIfNoEntry: false })?.isDirectory())
    throw misuse('setup-git-push', `no other folder, as this app has a repository for pushes, ${place}`, folder)
  rmSync(place, { force: true })
  symlinkSync(folder, place)
}

/** @returns where a link leads */
function realOf (file: string): string {
  return existsSync(file) ? realpathSync(file) : file
}
