// Reads a heap snapshot in a process of its own, which may take long and much memory: node heap-look.ts FILE MAX_BYTES
// It says what holds the memory, as JSON.
import { readHeap } from './heap-file.ts'
import { findHolders } from './heap-holders.ts'

const [, , file, maxBytes] = process.argv
process.stdout.write(JSON.stringify(findHolders(readHeap(file, { maxBytes: Number(maxBytes) }))))
