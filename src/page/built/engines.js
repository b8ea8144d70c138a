import{at as e,rt as t}from"./page.js";const n=({url:e})=>{let t=new URL(e,location.origin);return t.pathname.endsWith(`/`)||(t.pathname+=`/`),t};function r(e){let[n=``,r]=location.pathname.slice(t.length).split(`/`);return e.href+n+(r?``:location.search)}function i({engines:i}){let a=i.map(n),o=a.findIndex(e=>e.origin===location.origin&&e.pathname===t);return e`
    <label class="engines"><span class="dim">Engine</span>
      <select value=${String(o)} title="The same screen of another engine" onChange=${e=>{let t=a[Number(e.target.value)];e.target.value=String(o),t&&location.assign(r(t))}}>
        ${o<0&&e`<option value="-1">this one</option>`}
        ${i.map(({name:t},n)=>e`<option key=${t} value=${String(n)} selected=${n===o}>${t}</option>`)}
      </select></label>`}export{i as Engines};