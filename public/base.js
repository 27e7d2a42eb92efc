/** The path below which a proxy shows these pages; empty where there is none. */
export const BASE = document.documentElement.dataset.base ?? ''
