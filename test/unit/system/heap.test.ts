import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import test from 'node:test'
import { LEAN_FLAGS } from '../../../server/keeper/lean.ts'

const HEAP = JSON.stringify(new URL('../../../server/system/heap.ts', import.meta.url).href)

test('a master starts with the code of Node as that was built, and gives its garbage back without a flag', () => {
  const plain = runNode([], 'console.log(v8.cachedDataVersionTag())')
  const lean = runNode(LEAN_FLAGS, `
    const { keepHeapSmall } = await import(${HEAP})
    console.log(v8.cachedDataVersionTag())
    const later = []
    globalThis.setTimeout = (work) => { later.push(work); return { unref () {} } }
    let garbage = { rest: new Array(1000).fill(1) }
    const known = new WeakRef(garbage)
    garbage = null
    keepHeapSmall()
    setImmediate(() => {
      for (const work of later) work()
      setImmediate(() => console.log(known.deref() === undefined, typeof gc))
    })
  `)
  assert.deepEqual(lean, [...plain, 'true undefined'])
})

/** @returns the lines that it prints */
function runNode (flags: readonly string[], code: string): string[] {
  const text = execFileSync(process.execPath, [...flags, '--input-type=module', '-e',
    `import v8 from 'node:v8'\n${code}`], { encoding: 'utf8' })
  return text.trim().split('\n')
}
