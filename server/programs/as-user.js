// A process of root gives up all that it may do, for good, and runs a command as another user. Nothing of that user's is read or run before, and
// execve(2) leaves nothing of root's in its memory.
import { accessSync, constants, readFileSync } from 'node:fs'
import os from 'node:os'
import { errorText } from '../errors.js'
import { loadPosix } from '../system/posix.js'
import { idsIn } from '../system/process-owner.js'

/** Its standard streams, and the two of the line to root. */
const DESCRIPTORS = 5

const posix = loadPosix()
const [user, groups, script, ...words] = process.argv.slice(2)
process.exitCode = 1
process.stderr.write(`clusterdeck: adopt: as the user of the program (uid ${user}): ${becomeUser(Number(user), groups.split(',').map(Number)) ?? execute()}\n`)

/** @param {number} uid @param {number[]} gids  the main one first @returns {string | null} why not */
function becomeUser (uid, gids) {
  process.setgroups?.(gids)
  process.setgid?.(gids[0])
  process.setuid?.(uid)
  const status = readFileSync('/proc/self/status', 'utf8')
  const isUser = idsIn(status, 'Uid').every((each) => each === uid) && uid !== 0
  return isUser && /^CapPrm:\s*0+$/m.test(status) && /^CapEff:\s*0+$/m.test(status) && /^CapAmb:\s*0+$/m.test(status) ? null : 'some rights of root could not be given up'
}

/** @returns {string} why not */
function execute () {
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
  return posix?.execute(process.execPath, [process.execPath, script, ...words], env, DESCRIPTORS) ?? 'it takes the package koffi'
}

/** @returns {Record<string, string>} */
function placeOfUser () {
  try {
    const { username, homedir, shell } = os.userInfo()
    return { HOME: homedir, USER: username, LOGNAME: username, SHELL: shell ?? '/bin/sh' }
  } catch {
    // ENOENT: no passwd knows this user.
    return { HOME: '' }
  }
}
