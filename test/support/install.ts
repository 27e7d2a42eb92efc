import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { rename, symlink } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { tempFolder } from './folder.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const CONTENT = ['build', 'dist', 'server', 'workers', 'db', 'views', 'public']

/**
 * clusterdeck as a machine has it: one folder per version, and a link to the one that is installed.
 * @returns where its command line is, and what installs another version
 */
export function createInstallation () {
  const folder = tempFolder()
  const link = path.join(folder, 'current')
  unpack('1.0.0')
  symlinkSync(path.join(folder, '1.0.0'), link)

  return {
    cli: path.join(link, 'server', 'cli.js'),

    /** `broken`: files with other content than they should have, null: without them */
    async install (version: string, broken: Record<string, string | null> = {}) {
      unpack(version)
      for (const [file, content] of Object.entries(broken)) {
        if (content === null) rmSync(path.join(folder, version, file))
        else writeFileSync(path.join(folder, version, file), content)
      }
      await symlink(path.join(folder, version), `${link}.new`)
      await rename(`${link}.new`, link)
    }
  }

  function unpack (version: string) {
    const target = path.join(folder, version)
    mkdirSync(target)
    for (const name of CONTENT)
      cpSync(path.join(ROOT, name), path.join(target, name), { recursive: true, preserveTimestamps: true,
        filter: (file) => path.basename(file) !== 'node_modules' })
    writeFileSync(path.join(target, 'package.json'),
      JSON.stringify({ ...JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')), version }))
    linkPackages(target)
  }
}

/** Gives an installation the packages of this one. */
export function linkPackages (folder: string) {
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'))
}
