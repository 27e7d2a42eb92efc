import { spawnSync } from 'node:child_process'
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import path from 'node:path'
import { errorCode } from '../../server/errors.ts'
import { tempFolder } from './folder.ts'
import type { TestOwner } from './deck.ts'

/** Why there can be no disk that is full: only root may mount one. */
export const lacksSmallDisk: string | false = mountable() ? false : 'a disk that can be full has to be mounted, as root'

/** A disk in memory. */
export function smallDisk (t: TestOwner, { megabytes = 6 }: { megabytes?: number } = {}) {
  const folder = tempFolder()
  mount('-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder)
  t.after(() => spawnSync('umount', ['-l', folder]))
  const filler = path.join(folder, 'filler')

  return {
    folder,

    /** To the last byte. */
    fill () {
      const fd = openSync(filler, 'a')
      for (let size = 1024 * 1024; size >= 1; size /= 16) {
        try {
          for (;;) writeSync(fd, Buffer.alloc(size))
        } catch (error) {
          if (errorCode(error) !== 'ENOSPC') throw error
        }
      }
      closeSync(fd)
    },

    free () {
      rmSync(filler)
    },

    /** While nobody writes. */
    setReadOnly (isReadOnly: boolean) {
      mount('-o', `remount,${isReadOnly ? 'ro' : 'rw'}`, folder)
    },

    /** Whatever is opened from now on; who has a file open can go on writing to it. `inner`: a folder of the disk. */
    cover (inner: string) {
      mount('--bind', inner, inner)
      mount('-o', 'remount,bind,ro', inner)
      return { uncover: () => {
        spawnSync('umount', ['-l', inner])
      } }
    }
  }
}

function mount (...args: string[]) {
  const { status, stderr } = spawnSync('mount', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`mount ${args.join(' ')}: ${stderr}`)
}

function mountable () {
  const folder = tempFolder()
  if (process.platform !== 'linux' || spawnSync('mount', ['-t', 'tmpfs', 'tmpfs', folder]).status !== 0) return false
  spawnSync('umount', [folder])
  return true
}
