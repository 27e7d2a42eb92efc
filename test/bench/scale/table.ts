export function row (...cells: string[]) {
  return `| ${cells.join(' | ')} |`
}

export function msText (ms: number) {
  if (ms < 0.001) return '0 ms'
  return `${ms >= 100 ? Math.round(ms) : ms >= 10 ? ms.toFixed(1) : ms >= 0.1 ? ms.toFixed(2) : ms.toFixed(3)} ms`
}

export function bytesText (bytes: number) {
  if (bytes < 1000) return `${Math.round(bytes)} B`
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`
}
