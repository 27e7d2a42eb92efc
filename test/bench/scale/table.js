/** @param {...string} cells */
export function row (...cells) {
  return `| ${cells.join(' | ')} |`
}

/** @param {number} ms */
export function msText (ms) {
  if (ms < 0.001) return '0 ms'
  return `${ms >= 100 ? Math.round(ms) : ms >= 10 ? ms.toFixed(1) : ms >= 0.1 ? ms.toFixed(2) : ms.toFixed(3)} ms`
}

/** @param {number} bytes */
export function bytesText (bytes) {
  if (bytes < 1000) return `${Math.round(bytes)} B`
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`
}
