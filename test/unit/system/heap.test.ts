import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import test from 'node:test'
import { LEAN_FLAGS } from '../../../server/keeper/lean.ts'

const POSIX = JSON.stringify(new URL('../../../server/system/posix.ts', import.meta.url).href)
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

test('what lies free between what is in use goes back to the kernel', () => {
  const [used, left] = runNode(['--expose-gc'], `
    const { loadPosix } = await import(${POSIX})
    const kept = []
    for (let n = 0; n < 1000; n++) {
      // Below the size for which the C library asks the kernel each time.
      const part = Buffer.allocUnsafeSlow(60_000).fill(1)
      if (n % 100 === 0) kept.push(part)
    }
    const used = process.memoryUsage.rss()
    // V8 frees in threads of its own.
    for (let n = 0; n < 50 && process.memoryUsage.rss() > used - 25_000_000; n++) {
      gc()
      await new Promise((resolve) => setTimeout(resolve, 20))
      loadPosix().trimMemory()
    }
    console.log(used + '\\n' + process.memoryUsage.rss(), kept.length)
  `).map((line) => Number.parseInt(line, 10))
  assert.ok(used - left > 25_000_000, `${used} bytes, and then ${left}`)
})

/** @returns the lines that it prints */
function runNode (flags: readonly string[], code: string): string[] {
  const text = execFileSync(process.execPath, [...flags, '--input-type=module', '-e',
    `import v8 from 'node:v8'\n${code}`], { encoding: 'utf8' })
  return text.trim().split('\n')
}
