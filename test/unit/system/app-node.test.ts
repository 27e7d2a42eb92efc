import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { nativeModuleHint } from '../../../server/crashes/native-module.ts'
import { chooseNode, isOldNode, pathWithNode, stripsTypes } from '../../../server/system/app-node.ts'
import { tempFolder, writeFiles } from '../../support/folder.ts'

const OWN = { file: process.execPath, version: process.versions.node }

/** @returns a program that says it is Node of that version */
function fakeNode (version: string, folder: string = tempFolder()): string {
  const file = path.join(folder, 'node-of-test')
  mkdirSync(folder, { recursive: true })
  writeFileSync(file, `#!/bin/sh\nprintf '%s\\nv%s' "$0" ${version}\n`)
  chmodSync(file, 0o755)
  symlinkSync('node-of-test', path.join(folder, 'node'))
  return path.join(folder, 'node')
}

function folderWith (files: Record<string, string>): string {
  const folder = tempFolder()
  writeFiles(folder, files)
  return folder
}

/** @returns as nvm has them */
function nvmWith (...versions: string[]): string {
  const folder = tempFolder()
  for (const version of versions) fakeNode(version, path.join(folder, 'versions/node', `v${version}`, 'bin'))
  return folder
}

describe('the Node of an app', () => {
  const env = { NVM_DIR: nvmWith('20.9.0', '20.11.1', '22.3.0', '23.1.0'), PATH: '/nowhere', HOME: '/nowhere' }

  test('is the one of the option: a path, or the newest version that fits', async () => {
    const folder = folderWith({ '.nvmrc': '22' })
    for (const [wanted, version] of [[20, '20.11.1'], ['20.9', '20.9.0'], ['v22.3.0', '22.3.0']] as [string | number,
      string][])
    {
      const node = await chooseNode({ wanted, folder, env })
      assert.deepEqual([node.by, node.version], ['option', version])
      assert.ok(path.isAbsolute(node.file) && node.file.includes(version))
    }
    assert.deepEqual(await chooseNode({ wanted: process.execPath, folder, env }), { ...OWN, by: 'option' })
    assert.equal((await chooseNode({ wanted: fakeNode('18.1.0'), folder, env })).version, '18.1.0')
  })

  test('is refused where the option names none, with what is installed', async () => {
    const folder = tempFolder()
    await assert.rejects(chooseNode({ wanted: '21', source: 'node in deck.json', folder, env }), {
      code: 'invalid-config',
      message:
        'node in deck.json: expected a version of Node that nvm, fnm, volta, mise or asdf has installed for this user, or that of node in PATH, received "21"; installed are 23.1.0, 22.3.0, 20.11.1, 20.9.0'
    })
    await assert.rejects(chooseNode({ wanted: '/bin/true', folder, env }), { code: 'invalid-config',
      message: 'node: expected a program of Node.js, received "/bin/true" (which does not say that it is one)' })
    await assert.rejects(chooseNode({ wanted: '/nowhere/node', folder, env }), {
      message: 'node: expected a program of Node.js, received "/nowhere/node" (ENOENT)'
    })
  })

  test('is the one that a file asks for: .nvmrc, .node-version, volta, in the nearest folder up to the repository', async () => {
    for (const [name, text, version, by = name] of [['.nvmrc', '# ours\nv20.9.0\n', '20.9.0'], ['.nvmrc', '20.x',
      '20.11.1'], ['.nvmrc', 'lts/iron', '20.11.1'], ['.nvmrc', 'lts/*', '22.3.0'], ['.nvmrc', 'node', '23.1.0'], [
      '.node-version',
      '22\n',
      '22.3.0'
    ], ['package.json', '{ "volta": { "node": "20.11.1" } }', '20.11.1', 'volta']]) {
      const node = await chooseNode({ folder: folderWith({ [name]: text }), env })
      assert.deepEqual([node.by, node.version], [by, version], text)
    }
    const above = folderWith({ '.nvmrc': '20', 'repository/.git': '', 'repository/app/package.json': '{}',
      'repository/.node-version': '22' })
    assert.equal((await chooseNode({ folder: path.join(above, 'repository/app'), env })).version, '22.3.0')
    assert.equal((await chooseNode({ folder: above, env })).version, '20.11.1')
  })

  test('is the one with which the command was typed where a file asks for one that is not installed, and says so', async () => {
    const typed = fakeNode('19.1.0')
    const folder = folderWith({ '.nvmrc': '21.0' })
    const node = await chooseNode({ folder, env: { ...env, CLUSTERDECK_TYPED_NODE: typed } })
    assert.deepEqual([node.by, node.version, node.instead], ['command', '19.1.0',
      `${folder}/.nvmrc asks for Node 21.0, which is not installed for this user; the app runs on Node 19.1.0`])
    assert.deepEqual(
      await chooseNode({ folder: tempFolder(), env: { ...env, CLUSTERDECK_TYPED_NODE: '/nowhere/node' } }),
      { ...OWN, by: 'clusterdeck' }
    )
    assert.match(String((await chooseNode({ folder: folderWith({ '.nvmrc': 'my\u001b[2Jalias' }), env })).instead),
      /asks for Node my\\u001b\[2Jalias, which is not understood here/)
  })

  test('is found in PATH, and not where somebody else could replace it', async () => {
    const [folder, file] = [tempFolder(), fakeNode('17.2.0')]
    const place = { folder, env: { ...env, PATH: path.dirname(file) } }
    assert.equal((await chooseNode({ wanted: '17', ...place })).version, '17.2.0')
    chmodSync(path.dirname(file), 0o777)
    await assert.rejects(chooseNode({ wanted: '17', ...place }), { code: 'invalid-config' })
    chmodSync(path.dirname(file), 0o755)
  })

  test('comes first in PATH, where `node` does not mean it already', () => {
    const [one, other] = [fakeNode('20.1.0'), fakeNode('22.1.0')]
    const node = { file: path.join(path.dirname(one), 'node-of-test'), version: '20.1.0', by: 'option' } as const
    assert.equal(pathWithNode(node, `/bin:${path.dirname(other)}`), `${path.dirname(one)}:/bin:${path.dirname(other)}`)
    assert.equal(pathWithNode(node, `/venv:${path.dirname(one)}`), `/venv:${path.dirname(one)}`)
    assert.equal(pathWithNode(node, '/nowhere'), `${path.dirname(one)}:/nowhere`)
    assert.equal(pathWithNode({ ...node, by: 'command' }, '/nowhere'), `/nowhere:${path.dirname(one)}`)
    assert.equal(pathWithNode(undefined, ''), path.dirname(process.execPath))
  })

  test('runs workers from 20.19, 22.12 and 23 on, and TypeScript from 22.18 and 23.6 on', () => {
    assert.deepEqual(
      ['14.21.3', '18.20.8', '20.18.9', '20.19.0', '21.7.0', '22.11.0', '22.12.0', '23.0.0', '24.0.0', '30.1.0'].map(
        isOldNode
      ),
      [true, true, true, false, true, true, false, false, false, false]
    )
    assert.deepEqual(['20.19.0', '22.17.0', '22.18.0', '23.5.0', '23.6.0', '24.0.0'].map(stripsTypes), [false, false,
      true, false, true, true])
  })

  test('is named where a native module is of another one, by texts of hostile programs too', () => {
    const said = (module: string) =>
      `Error: The module '${module}'\nwas compiled against a different Node.js version using\nNODE_MODULE_VERSION 115. This version of Node.js requires\nNODE_MODULE_VERSION 137. Please try re-compiling`
    const node = { file: '/opt/24/bin/node', version: '24.1.0' }
    assert.equal(nativeModuleHint(said('/srv/app/node_modules/@img/sharp/lib/x.node'), node),
      '@img/sharp was built by Node 20, and Node 24.1.0 runs it: build it again by PATH=/opt/24/bin:$PATH npm rebuild @img/sharp, or set the option node to 20')
    assert.equal(nativeModuleHint(said('/srv/app/build/x.node').replace('115', '114'), node),
      'a native module was built by another Node (NODE_MODULE_VERSION 114), and Node 24.1.0 runs it: build it again by PATH=/opt/24/bin:$PATH npm rebuild, or set the option node to the one that has built it')
    assert.doesNotMatch(String(nativeModuleHint(said('/node_modules/$(reboot)/x.node'), node)), /reboot/)
    assert.equal(nativeModuleHint('something else', node), null)
  })
})
