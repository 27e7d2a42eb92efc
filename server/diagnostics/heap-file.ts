import { closeSync, openSync, readSync } from 'node:fs'
import { attempt } from '../errors.ts'

/**
 * A heap snapshot as V8 writes it, with what a look at it needs. An app wrote the file, so nothing in it is believed.
 */
export type Heap = {
  nodeCount: number,
  /** places in `typeNames` */
  nodeTypes: Uint8Array,
  /** places in `strings` */
  nodeNames: Uint32Array,
  /** of each by itself */
  nodeBytes: Uint32Array,
  /** of each node, and the end of the last one's */
  firstEdges: Uint32Array,
  /** places in `edgeTypeNames` */
  edgeTypes: Uint8Array,
  /** a place in `strings`, or a number, as its type says */
  edgeNames: Uint32Array,
  /** numbers of nodes */
  edgeTargets: Uint32Array,
  typeNames: readonly string[],
  edgeTypeNames: readonly string[],
  /** cut */
  strings: string[]
}

const CHUNK_BYTES = 1024 * 1024
/** Sources and texts of the app are strings of the heap too; of a name so much is enough. */
const MAX_STRING_CHARS = 200
/** What is kept of each, here and by who looks at it. */
const BYTES_OF_NODE = 32
const BYTES_OF_EDGE = 9
const MAX_HEADER_CHARS = 100_000
const [COMMA, CLOSE, QUOTE, BACKSLASH, ZERO, NINE] = [...',]"\\09'].map((char) => char.charCodeAt(0))

/**
 * Reads it piece by piece: as one text it may be longer than a string can be, and as objects it would take ten times
 * the heap. `limits`: how much memory that may take.
 * @throws {Error} where it is no snapshot, not whole, or too large
 */
export function readHeap (file: string, { maxBytes }: { maxBytes: number }): Heap {
  const fd = openSync(file, 'r')
  try {
    return readSections(createReader(fd), maxBytes)
  } finally {
    closeSync(fd)
  }
}

function readSections (reader: ReturnType<typeof createReader>, maxBytes: number): Heap {
  const { snapshot } = JSON.parse(`${reader.textBefore('"nodes":[').replace(/,\s*$/, '')}}`)
  const { meta, node_count: nodeCount, edge_count: edgeCount } = snapshot
  if (!(nodeCount >= 0 && edgeCount >= 0))
    throw new Error(`expected how many nodes and edges there are, found ${nodeCount} and ${edgeCount}`)
  const bytes = nodeCount * BYTES_OF_NODE + edgeCount * BYTES_OF_EDGE
  if (!(bytes <= maxBytes))
    throw new Error(`expected a heap that can be read with ${maxBytes} bytes, this one takes ${bytes}`)
  const nodeFields = fieldsOf(meta.node_fields, ['type', 'name', 'self_size', 'edge_count'])
  const edgeFields = fieldsOf(meta.edge_fields, ['type', 'name_or_index', 'to_node'])
  const [nodeTypes, nodeNames, nodeBytes, firstEdges] = [new Uint8Array(nodeCount), new Uint32Array(nodeCount),
    new Uint32Array(nodeCount), new Uint32Array(nodeCount + 1)]
  reader.rows(nodeCount, meta.node_fields.length, (row, index) => {
    nodeTypes[index] = row[nodeFields.type]
    nodeNames[index] = row[nodeFields.name]
    nodeBytes[index] = row[nodeFields.self_size]
    firstEdges[index + 1] = firstEdges[index] + row[nodeFields.edge_count]
  })
  if (firstEdges[nodeCount] !== edgeCount)
    throw new Error(`expected ${edgeCount} edges, found ${firstEdges[nodeCount]}`)
  reader.textBefore('"edges":[')
  const [edgeTypes, edgeNames, edgeTargets] = [new Uint8Array(edgeCount), new Uint32Array(edgeCount),
    new Uint32Array(edgeCount)]
  const width = meta.node_fields.length
  reader.rows(edgeCount, meta.edge_fields.length, (row, index) => {
    edgeTypes[index] = row[edgeFields.type]
    edgeNames[index] = row[edgeFields.name_or_index]
    edgeTargets[index] = row[edgeFields.to_node] / width
    if (!(edgeTargets[index] < nodeCount))
      throw new Error(`expected one of ${nodeCount} nodes, found number ${edgeTargets[index]}`)
  })
  reader.skipTo('"strings":[')
  return { nodeCount, nodeTypes, nodeNames, nodeBytes, firstEdges, edgeTypes, edgeNames, edgeTargets,
    typeNames: meta.node_types[nodeFields.type], edgeTypeNames: meta.edge_types[edgeFields.type],
    strings: reader.strings() }
}

/** @returns their places */
function fieldsOf<T extends string> (names: string[], wanted: T[]): Record<T, number> {
  return Object.fromEntries(wanted.map((name) => {
    const place = names.indexOf(name)
    if (place < 0) throw new Error(`expected a field ${name}, found ${names.join()}`)
    return [name, place]
  })) as Record<T, number>
}

function createReader (fd: number) {
  const chunk = Buffer.alloc(CHUNK_BYTES)
  let length = 0
  let at = 0

  return { textBefore, skipTo, rows, strings }

  function next (): number {
    if (at === length) {
      length = readSync(fd, chunk, 0, CHUNK_BYTES, null)
      at = 0
      if (length === 0) throw new Error('expected more: the snapshot is not whole')
    }
    return chunk[at++]
  }

  /** @returns what comes before it, which is short */
  function textBefore (mark: string): string {
    let text = ''
    while (!text.endsWith(mark)) {
      text += String.fromCharCode(next())
      if (text.length > MAX_HEADER_CHARS) throw new Error(`expected ${mark} within ${MAX_HEADER_CHARS} characters`)
    }
    return text.slice(0, -mark.length)
  }

  /** `mark`: before it come only numbers and other names */
  function skipTo (mark: string) {
    for (let matched = 0; matched < mark.length;) {
      const byte = next()
      if (byte === mark.charCodeAt(matched)) matched++
      else matched = byte === mark.charCodeAt(0) ? 1 : 0
    }
  }

  /** `take`: the row is reused */
  function rows (count: number, width: number, take: (row: Float64Array, index: number) => void) {
    const row = new Float64Array(width)
    for (let index = 0; index < count; index++) {
      for (let field = 0; field < width; field++) row[field] = number()
      take(row, index)
    }
  }

  function number (): number {
    let value = 0
    let digits = 0
    for (;;) {
      const byte = next()
      if (byte >= ZERO && byte <= NINE) {
        value = value * 10 + byte - ZERO
        digits++
      } else if (digits > 0) {
        return value
      } else if (byte === CLOSE) {
        throw new Error('expected more numbers')
      }
    }
  }

  function strings (): string[] {
    const all = []
    for (;;) {
      const byte = next()
      if (byte === QUOTE) all.push(string())
      else if (byte === CLOSE) return all
      else if (byte !== COMMA && byte > 32)
        throw new Error(`expected a string, found ${JSON.stringify(String.fromCharCode(byte))}`)
    }
  }

  /** @returns cut */
  function string (): string {
    const bytes = []
    for (let byte = next(); byte !== QUOTE; byte = next()) {
      if (byte !== BACKSLASH) {
        if (bytes.length < MAX_STRING_CHARS) bytes.push(byte)
        continue
      }
      const escaped = next()
      if (bytes.length < MAX_STRING_CHARS) bytes.push(byte, escaped)
    }
    return textOf(Buffer.from(bytes).toString())
  }
}

/** `json`: without its quotes, perhaps cut within an escape */
function textOf (json: string) {
  if (!json.includes('\\')) return json
  return attempt(() => JSON.parse(`"${json.replace(/\\u[\da-f]{0,3}$/i, '')}"`), json)
}
