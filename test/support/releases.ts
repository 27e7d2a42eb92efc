import { copyFile, mkdir, rename, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { tempFolder } from './folder.ts'

const FIXTURES = fileURLToPath(new URL('../fixtures/', import.meta.url))

/** A folder of releases with a `current` link, as deploy tools lay it out. `fixture`: the first release's app. */
export async function createReleases (fixture: string) {
  const root = tempFolder()
  await writeFile(path.join(root, 'package.json'), '{ "type": "module" }')
  await mkdir(path.join(root, 'first'))
  await copyFile(path.join(FIXTURES, fixture), path.join(root, 'first', 'app.js'))
  await pointTo('first')

  return {
    root,
    entry: path.join(root, 'current', 'app.js'),

    /** Adds a release and points `current` to it. */
    async add (name: string, source: string) {
      await mkdir(path.join(root, name))
      await writeFile(path.join(root, name, 'app.js'), source)
      await pointTo(name)
    }
  }

  async function pointTo (name: string) {
    await symlink(name, path.join(root, 'next'))
    await rename(path.join(root, 'next'), path.join(root, 'current'))
  }
}
