// Starts a program that gets EPERM for some calls of the system, as in a container: node denies-calls.ts NUMBER,…
// PROGRAM ARGUMENT…
import { createRequire } from 'node:module'

const koffi = createRequire(import.meta.url)('koffi')
const libc = koffi.load(null)
const prctl = libc.func('int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)')
const syscall = libc.func('long syscall(long number, ...)')
const fcntl = libc.func('int fcntl(int fd, int command, ...)')
const execve = libc.func('int execve(const char *file, const char **args, const char **env)')
const SECCOMP = process.arch === 'arm64' ? 277 : 317
// linux/filter.h, linux/seccomp.h
const [LOAD, IF_EQUAL, RETURN] = [0x20, 0x15, 0x06]
const [ALLOW, ERROR, EPERM] = [0x7fff0000, 0x00050000, 1]

const [, , numbers, ...words] = process.argv
const program = [[LOAD, 0, 0, 0],
  ...numbers.split(',').flatMap((number) => [[IF_EQUAL, 0, 1, Number(number)], [RETURN, 0, 0, ERROR + EPERM]]), [RETURN,
  0, 0, ALLOW]]
const code = Buffer.alloc(8 * program.length)
program.forEach(([operation, ifTrue, ifFalse, k], index) => {
  code.writeUInt16LE(operation, 8 * index)
  code.writeUInt8(ifTrue, 8 * index + 2)
  code.writeUInt8(ifFalse, 8 * index + 3)
  code.writeUInt32LE(k, 8 * index + 4)
})
const whole = Buffer.alloc(16)
whole.writeUInt16LE(program.length)
whole.writeBigUInt64LE(BigInt(koffi.address(code)), 8)
prctl(38, 1, 0, 0, 0)
if (Number(syscall(SECCOMP, 'unsigned int', 1, 'unsigned int', 0, 'void *', whole)) < 0)
  throw new Error(`no filter: ${koffi.errno()}`)
for (const fd of [0, 1, 2]) fcntl(fd, 2, 'int', 0)
execve(words[0], [...words, null], [...Object.entries(process.env).map(([name, value]) => `${name}=${value}`), null])
throw new Error(`${words[0]} cannot be executed: ${koffi.errno()}`)
