import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { NUMBERS } from '../../../server/programs/system-calls.ts'

/** Headers of the kernel: arm64 has the generic table. */
const TABLES = { x64: '/usr/include/x86_64-linux-gnu/asm/unistd_64.h', arm64: '/usr/include/asm-generic/unistd.h' }

for (const [architecture, header] of Object.entries(TABLES)) {
  test(`the numbers of system calls on ${architecture} are those of the kernel's headers`, {
    skip: !existsSync(header) && `${header} is not here`
  }, () => {
    const text = readFileSync(header, 'utf8')
    const { audit: _, ...numbers } = NUMBERS[architecture as keyof typeof NUMBERS]
    for (const [name, number] of Object.entries(numbers)) {
      if (number === null) continue
      const called = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
      assert.equal(Number(new RegExp(`^#define __NR_${called}\\s+(\\d+)$`, 'm').exec(text)?.[1]), number, name)
    }
  })
}
