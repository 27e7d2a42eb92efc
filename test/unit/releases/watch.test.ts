import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { DeckError } from '../../../server/errors.ts'
import { createEventStream } from '../../../server/events/stream.ts'
import { createWatcher } from '../../../server/releases/watch.ts'
import { tempFolder } from '../../support/folder.ts'
import { until } from '../../support/until.ts'

function watching (t: TestContext, deploy: () => void = () => {}) {
  const folder = tempFolder()
  const names = ['own.js', 'other.js', 'node_modules/pkg/index.js']
  mkdirSync(path.join(folder, 'node_modules', 'pkg'), { recursive: true })
  const write = (name: string, text = String(Math.random())) => {
    writeFileSync(path.join(folder, name), text)
    return path.join(folder, name)
  }
  const events = createEventStream()
  const seen = { deploys: 0, lines: [] as string[], stderr: [] as string[] }
  const watcher = createWatcher({ deploy () {
    seen.deploys++
    deploy()
  }, events, stderrOf: () => seen.stderr, tell: (line) => {
    seen.lines.push(line)
  } })
  t.after(watcher.close)
  watcher.add(names.map((name) => write(name)))
  return { folder, write, events, seen, watcher }
}

/**
 * A file is watched a moment after it has been named: it is written again, slowly enough for a deploy, until that has
 * an effect.
 */
async function writeUntil (write: () => void, isSeen: () => boolean) {
  let writtenAt = -Infinity
  await until(() => {
    if (performance.now() - writtenAt > 500) {
      write()
      writtenAt = performance.now()
    }
    return isSeen()
  }, 'a change to be seen')
}

/** From here on what is written is seen, and nothing that was written before is still to be. */
async function begin (write: (name: string) => string, seen: { deploys: number }) {
  await writeUntil(() => write('own.js'), () => seen.deploys > 0)
  for (let before = 0; before !== seen.deploys; await new Promise((resolve) => setTimeout(resolve, 300)))
    before = seen.deploys
  seen.deploys = 0
}

describe('watching', { concurrency: true }, () => {
  test('many changes at once are one deploy, and those of packages are none', async (t) => {
    const { write, seen } = watching(t)
    await begin(write, seen)
    write('node_modules/pkg/index.js')
    await new Promise((resolve) => setTimeout(resolve, 500))
    assert.equal(seen.deploys, 0)
    for (let n = 0; n < 20; n++) write(n % 2 ? 'own.js' : 'other.js')
    await until(() => seen.deploys > 0, 'a deploy')
    await new Promise((resolve) => setTimeout(resolve, 300))
    assert.equal(seen.deploys, 1)
  })

  test('a change that comes while a rollout runs is rolled out after it', async (t) => {
    let isBusy = false
    const { write, seen, events } = watching(t, () => {
      if (isBusy) throw new DeckError('rollout-running', 'rollout 1 (deploy) is running')
    })
    await begin(write, seen)
    isBusy = true
    write('own.js')
    await until(() => seen.deploys === 1, 'the first try')
    isBusy = false
    events.publish({ type: 'rollout.succeeded', rollout: 1 })
    await until(() => seen.deploys === 2, 'the second try')
    events.publish({ type: 'rollout.succeeded', rollout: 2 })
    await new Promise((resolve) => setTimeout(resolve, 300))
    assert.deepEqual([seen.deploys, seen.lines], [2, []])
  })

  test('a file that no worker could load is watched for, if its error names it; the error is said once', async (t) => {
    const { write, seen, events } = watching(t)
    const broken = write('broken.ts', 'const = 1')
    seen.stderr = ['noise', `file://${broken}:1`, 'const = 1', '      ^', '', 'SyntaxError: no', '    at somewhere',
      'Node.js']
    for (let n = 0; n < 3; n++) {
      events.publish({ type: 'worker.exited', cause: 'boot-failure', slot: 1, worker: n,
        detail: { errorName: 'SyntaxError', stack: 'SyntaxError: no\n    at /etc/passwd\n    at file:///%00.js' } })
    }
    assert.deepEqual(seen.lines,
      [`file://${broken}:1`, 'const = 1', '      ^', 'SyntaxError: no', '    at somewhere'].map((line) => `  ${line}`))
    await writeUntil(() => write('broken.ts'), () => seen.deploys > 0)
  })

  test('what cannot be deployed is said, and takes anything for a file', async (t) => {
    const { write, seen, watcher } = watching(t, () => {
      throw new DeckError('entry-not-found', 'entry: it is gone')
    })
    watcher.add([null, 7, {}, 'relative.js', '/nul\0.js', '/does/not/exist.js'])
    await writeUntil(() => write('own.js'), () => seen.lines.length > 0)
    assert.equal(seen.lines[0], 'watch: entry: it is gone')
  })
})

test('of another program the sources in its folder count, and nothing that it writes beside them', async (t) => {
  const { folder, write, seen, watcher } = watching(t)
  watcher.addFolder(folder)
  await writeUntil(() => write('app.py'), () => seen.deploys > 0)
  await begin(write, seen)
  mkdirSync(path.join(folder, '__pycache__'))
  for (const name of ['data.sqlite', 'app.log', '__pycache__/app.py', 'node_modules/pkg/new.js']) write(name)
  await new Promise((resolve) => setTimeout(resolve, 600))
  assert.equal(seen.deploys, 0)
})
