// Binds a Unix socket that it has as a descriptor, says how that went, and ends. Where the socket has a stage, this
// process sees that as the whole file system, and makes the folders of the path in it: the socket then knows itself by
// its path, and is elsewhere.
import { mkdirSync, readdirSync, renameSync, rmSync, writeSync } from 'node:fs'
import path from 'node:path'
import { toError } from '../errors.ts'
import { loadPosix, type Posix } from '../system/posix.ts'

const SOCKET = 3
const STAGE = '/proc/self/fd/4'

/** `stage`: the name that it gets there; without one it is bound where it is. */
const [file, stage, isRoot] = process.argv.slice(2)
const posix = loadPosix() as Posix
writeSync(1, JSON.stringify(bindSafely()))

/** @returns `refused`: this process may not change its root */
function bindSafely (): { errno: number } | { refused: number } {
  try {
    return stage === undefined ? { errno: posix.bindUnix(SOCKET, file) } : bindInStage()
  } catch (error) {
    return { errno: toError(error).errno ?? -1 }
  }
}

function bindInStage () {
  process.chdir(STAGE)
  // A path within the folder that it is in needs no root of its own.
  const refused = isRoot === 'true' ? posix.changeRoot('.') : 0
  if (refused !== 0) return { refused }
  const top = process.cwd()
  const parts = file.split('/')
  for (let count = 1; count < parts.length; count++)
    mkdirSync(parts.slice(0, count).join('/') || '/', { recursive: true })
  const errno = posix.bindUnix(SOCKET, file)
  if (errno === 0) renameSync(file, path.join(top, stage))
  for (const each of readdirSync(top)) if (each !== stage) rmSync(path.join(top, each), { recursive: true })
  return { errno }
}
