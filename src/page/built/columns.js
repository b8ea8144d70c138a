import{at as e,ct as t,ot as n}from"./page.js";function r({all:r,chosen:i,usual:a,onChoose:o,sorted:s,onClose:c}){let l=t(null);n(()=>{l.current?.querySelector(`input`)?.focus();let e=e=>{e.target instanceof Node&&!l.current?.parentElement?.contains(e.target)&&c()};return document.addEventListener(`pointerdown`,e),()=>document.removeEventListener(`pointerdown`,e)},[]);let u=i.length===1,d=e=>o(r.map(e=>e.name).filter(t=>t===e?!i.includes(t):i.includes(t)));return e`
    <div class="drop columns" role="group" aria-label="Columns" ref=${l} onKeyDown=${e=>{e.key===`Escape`&&(e.stopPropagation(),c())}}>
      ${r.map(({name:t})=>e`<label class="flag" key=${t}><input type="checkbox" checked=${i.includes(t)} disabled=${u&&i.includes(t)} onChange=${()=>d(t)} /> ${t}</label>`)}
      <button type="button" onClick=${()=>o(a)}>The usual ones</button>
      <label class="flag"><span class="dim">Sorted by</span>
        <select aria-label="Sorted by" value=${s.by??``} onChange=${e=>s.set(e.target.value,s.isDown)}>
          <option value="">the newest first</option>
          ${r.filter(({name:e,sort:t})=>t&&i.includes(e)).map(({name:t})=>e`<option key=${t} value=${t}>${t}</option>`)}
        </select></label>
      <label class="flag"><input type="checkbox" checked=${s.isDown} disabled=${!s.by} onChange=${()=>s.set(s.by??``,!s.isDown)} /> the greatest first</label>
    </div>`}export{r as Columns};