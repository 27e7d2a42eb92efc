import { chmodSync, existsSync, mkdtempSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'

/** What programs look for in the folders above the one that they run in. */
const READ_FROM_ABOVE = ['package.json', 'node_modules', '.git', 'pnpm-workspace.yaml', 'clusterdeck.config.js',
  'clusterdeck.config.mjs', 'clusterdeck.config.json']

/** Some tests become another user, and have folders of theirs below. */
export const FOR_OTHERS = 0o711

/** @returns a temporary folder with nothing above it that a program would take for its own */
export function runFolder (): string {
  const parents = [os.tmpdir(), '/var/tmp', '/dev/shm']
  const parent = parents.find((folder) =>
    existsSync(folder) &&
    !foldersUpFrom(folder).some((above) => READ_FROM_ABOVE.some((name) => existsSync(path.join(above, name))))
  )
  if (parent === undefined)
    throw new Error(
      `the tests need a folder without any of ${
        READ_FROM_ABOVE.join(', ')
      } in it or above it: name one by TMPDIR; there is none among ${parents.join(', ')}`
    )
  const folder = mkdtempSync(path.join(parent, 'deck-'))
  chmodSync(folder, FOR_OTHERS)
  return folder
}

/** @returns that and all above it */
function foldersUpFrom (folder: string): string[] {
  const above = path.dirname(folder)
  return above === folder ? [folder] : [folder, ...foldersUpFrom(above)]
}
