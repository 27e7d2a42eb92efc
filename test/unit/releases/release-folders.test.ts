import assert from 'node:assert/strict'
import { readdirSync, realpathSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { createReleaseFolders } from '../../../server/releases/release-folders.ts'
import { tempFolder, writeFiles } from '../../support/folder.ts'
import { fake } from '../../support/fake.ts'

for (const [what, name] of [['folders', 'files/made/by/app/'], ['a file', 'files/note.txt']]) {
  test(`makes nothing where a link in a release leads out of it: ${what} that all releases share`, async () => {
    const [home, outside, code] = [tempFolder(), tempFolder(), realpathSync(tempFolder())]
    const folders = createReleaseFolders({ dataFolder: tempFolder(), releaseFolder: tempFolder(),
      onError: assert.ifError })
    writeFiles(home, { 'app.js': '', 'files/note.txt': '' })
    writeFiles(code, { 'app.js': '' })
    symlinkSync(outside, path.join(code, 'files'))
    const refused = { code: 'invalid-config',
      message: `releases.shared: expected places within the release, received one below files, which leads to ${
        realpathSync(outside)
      }` }
    const { top } = await folders.begin('r1')
    symlinkSync(outside, path.join(top, 'files'))
    await assert.rejects(folders.share({ top, folder: top }, { shared: [name], home }), refused)
    const place = fake<Parameters<typeof folders.look>[0]>({ folder: code, entry: path.join(code, 'app.js'),
      cwd: code })
    const draft = await folders.look(place, { shared: [name], exclude: [], home })
    await assert.rejects(folders.keep('r2', draft, []), refused)
    assert.deepEqual(readdirSync(outside), [])
  })
}
