// A process of root gives up all that it may do, for good, and runs a command as another user. Nothing of that user's
// is read or run before, and execve(2) leaves nothing of root's in its memory.
import { accessSync, constants, readFileSync } from 'node:fs'
import os from 'node:os'
import { attempt, errorText } from '../errors.ts'
import { loadPosix } from '../system/posix.ts'

/** Its standard streams, and the two of the line to root. */
const DESCRIPTORS = 5

const posix = loadPosix()
const [user, groups, script, ...words] = process.argv.slice(2)
process.exitCode = 1
process.stderr.write(`clusterdeck: adopt: as the user of the program (uid ${user}): ${becomeUser() ?? execute()}\n`)

/** @returns why not */
function becomeUser (): string | null {
  const [main, ...others] = groups.split(',').map(Number)
  process.setgroups?.([main, ...others])
  process.setgid?.(main)
  process.setuid?.(Number(user))
  const isBare = /^CapPrm:\s*0+\nCapEff:\s*0+$/m.test(readFileSync('/proc/self/status', 'utf8'))
  return isBare && process.getuid?.() !== 0 && process.geteuid?.() !== 0
    ? null
    : 'some rights of root could not be given up'
}

/** @returns why not */
function execute (): string {
  try {
    // Without this the reason would be a stack of Node.
    accessSync('.', constants.X_OK)
    accessSync(process.execPath, constants.X_OK)
    accessSync(script, constants.R_OK)
  } catch (error) {
    return `it may not enter the working folder, or not read the code of clusterdeck: ${errorText(error)}`
  }
  posix?.endWithParent()
  const env = Object.entries({ ...process.env, ...placeOfUser() }).map(([name, value]) => `${name}=${value}`)
  return posix?.execute(process.execPath, [process.execPath, script, ...words], env, DESCRIPTORS) ??
    'it takes the package koffi'
}

function placeOfUser (): Record<string, string> {
  // ENOENT: no passwd knows this user.
  return attempt(() => {
    const { username, homedir, shell } = os.userInfo()
    return { HOME: homedir, USER: username, LOGNAME: username, SHELL: shell ?? '/bin/sh' }
  }, { HOME: '' })
}
